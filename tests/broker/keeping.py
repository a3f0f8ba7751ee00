"""How do tests crash a hub without files? Its rows lie on a shelf, from which the next hub begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.broker.talking import OPEN_ACCESS

from betimes.broker.access.authentication import AccessControl
from betimes.broker.composition import OpenStore, compose
from betimes.broker.core.hub import Hub
from betimes.broker.durability.store import Store
from betimes.broker.storage.change_tables import Changes, Row, Table
from betimes.model.server_settings import Limits, ServerSettings

EPOCH_S = 1_700_000_000.0  # what the wall clock shows when the server's own shows 0


class Shelf:
    """Rows by table and key, as a file would hold them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Row, Row]] = {}
        self.commits = 0

    def write(self, changes: Sequence[Changes]) -> None:
        self.commits += 1
        for each in changes:
            rows = self.tables.setdefault(each.table.name, {})
            for row in each.put:
                rows[row[: len(each.table.key_columns)]] = row
            for key in each.removed:
                rows.pop(key, None)

    def rows(self, table: Table) -> list[tuple[Any, ...]]:
        rows: dict[Any, Row] = self.tables.get(table.name, {})
        return [rows[key] for key in sorted(rows)]

    def count(self, name: str) -> int:
        return len(self.tables.get(name, {}))

    def counts(self) -> dict[str, int]:
        """Return how many rows there are of what clients gave, where there are any."""
        return {name: len(rows) for name, rows in self.tables.items() if rows and name != "facts"}


def kept_hub(
    shelf: Shelf,
    *,
    now_s: float = 0.0,
    wall_s: float | None = None,
    access_control: AccessControl = OPEN_ACCESS,
    **limits: Any,
) -> tuple[Hub, Store]:
    """Return a hub with what lies on the shelf; what it reports lies there after a commit."""
    store = Store(shelf.write)
    parts = compose(
        ServerSettings(name="b1", limits=Limits(**limits), buffer=None),
        access_control,
        now_s=now_s,
        wall_s=EPOCH_S + now_s if wall_s is None else wall_s,
        epoch=1,
        kept=OpenStore(store=store, rows=shelf.rows, source="shelf"),
        model_came=lambda: None,
    )
    return parts.hub, store
