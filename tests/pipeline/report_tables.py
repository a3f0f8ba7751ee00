"""How are the tables made that a report reads? All of them, of a network of three brokers in a row."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.pipeline.replay_tables import write_rows

from betimes.pipeline.tables.shapes import (
    ADMISSIONS,
    BROKERS,
    DELIVERIES,
    DROPS,
    EVENTS,
    LINKS,
    PUBLISHERS,
    RELIABILITY,
    SUBSCRIPTIONS,
    TRANSFERS,
    WAIT_DISTRIBUTIONS,
    WAITS,
    TableShape,
)
from betimes.pipeline.telemetry.run_facts import FILE, VERSION

NASTY = "<script>alert('$x$')</script>"  # a name that must stay a name
EMPTY_RUN = {
    "telemetry": "out/telemetry", "files": 3, "is_unfinished": False, "over_s": 10.0, "last_s": 110.0,
    "brokers": 3, "rows": {}, "quarantined": {}, "open_subscriptions": 0, "publishers": 0, "links": 0,
    "wanted": 0.0, "on_time": 0.0, "earning": 0.0, "version": VERSION,
}  # fmt: skip
FULL_RUN = EMPTY_RUN | {
    "quarantined": {"duplicate": 2}, "open_subscriptions": 2, "publishers": 1, "links": 2,
    "wanted": 20.0, "on_time": 14.0, "earning": 24.0, "is_unfinished": True,
}  # fmt: skip
PASSAGE = {"share": 1.0, "origin": "a", "publisher": "p"}


def _link(source: str, target: str, size_kb: float = 1.0) -> dict[str, Any]:
    return {"source": source, "target": target, "size_kb": size_kb}


def put_rows(folder: Path, table: TableShape, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of a table, each into the folder that it belongs to."""
    (folder / table.name).mkdir(parents=True)
    if table.divided_by is None:
        (folder / table.name).rmdir()
        write_rows(folder, table, rows)
        return
    for value in sorted({row[table.divided_by] for row in rows}):
        write_rows(folder, table, [row for row in rows if row[table.divided_by] == value])


def make_tables(tables: Path, wanted: Mapping[str, float] | None = None) -> Path:
    """Write tables of a, b and c: a's events go to b and c, c's subscriber has an odd name.

    Each wanted ten messages, unless it is said how many.
    """
    folder = tables / "current"
    put_rows(folder, WAITS, [
        PASSAGE | {"number": 1, "time_s": 100.0, "wait_s": 0.0, "source": "a", "target": "b"},
        PASSAGE | {"number": 2, "time_s": 104.0, "wait_s": 2.0, "source": "a", "target": "b"},
        PASSAGE | {"number": 2, "time_s": 106.0, "wait_s": 1.0, "source": "b", "target": "c", "share": 0.5},
    ])  # fmt: skip
    put_rows(folder, TRANSFERS, [
        PASSAGE | {"number": 1, "time_s": 101.5, "age_s": 0.5, "transfer_s": 0.5} | _link("a", "b", 10.0),
        PASSAGE | {"number": 2, "time_s": 104.5, "age_s": 2.5, "transfer_s": 0.3} | _link("a", "b", 6.0),
        PASSAGE | {"number": 2, "time_s": 106.2, "age_s": 4.2, "transfer_s": 0.2} | _link("b", "c", 4.0),
    ])  # fmt: skip
    put_rows(folder, DELIVERIES, [
        PASSAGE | {"number": 1, "age_s": 0.5, "on_time": True, "home": "b", "subscriber": "s"},
        PASSAGE | {"number": 2, "age_s": 2.3, "on_time": False, "home": "b", "subscriber": "s"},
        PASSAGE | {"number": 2, "age_s": 3.5, "on_time": True, "home": "c", "subscriber": NASTY},
    ])  # fmt: skip
    put_rows(folder, DROPS, [
        PASSAGE | {"number": 3, "broker": "a", "reason": "hopeless", "subscribers": 2, "destination": "c"},
        PASSAGE | {"number": 4, "broker": "a", "reason": "hopeless", "subscribers": 1, "share": 0.5},
        PASSAGE | {"number": 5, "broker": "b", "reason": "expired", "subscribers": 1, "destination": "c"},
    ])  # fmt: skip
    speed = {"s_per_kb_variance": 0.0001, "s_per_kb_start": 0.02, "s_per_kb_width": 0.02, "loss": 0.0,
             "s_per_kb_weights": [1.0, 2.0, 1.0]}  # fmt: skip
    put_rows(folder, LINKS, [
        speed | {"source": "a", "target": "b", "s_per_kb_mean": 0.05},
        speed | {"source": "b", "target": "c", "s_per_kb_mean": 0.05, "loss": None},
    ])  # fmt: skip
    event = {"topic": "t", "content": '{"x": 1}', "deadline_s": float("inf"), "weight": 1.0}
    put_rows(folder, PUBLISHERS, [
        {"publisher": "p", "broker": "a", "count": 10.0, "rate_per_s": 1.0, "gaps_scv": 1.0,
         "size_kb_mean": 1.0, "size_kb_variance": 0.0, "sample": [event]},
    ])  # fmt: skip
    wish = {
        "pattern": "#",
        "filter": "x > 0",
        "price": 2.0,
        "reliability": 0.0,
        "is_shared": False,
        "from_s": 0.0,
    }
    put_rows(folder, SUBSCRIPTIONS, [
        wish | {"subscriber": "s", "home": "b", "delay_s_max": 1.0},
        wish | {"subscriber": NASTY, "home": "c", "delay_s_max": 4.0},
    ])  # fmt: skip
    share = {"count_rows": 10, "offered": 20.0}
    counts = {"s": 10.0, NASTY: 10.0} | dict(wanted or {})
    put_rows(folder, RELIABILITY, [
        share | {"subscriber": "s", "home": "b", "wanted": counts["s"], "on_time": 8.0,
                 "on_time_share": 0.8, "on_time_share_low": 0.5, "on_time_share_high": 0.95, "earning": 16.0},
        share | {"subscriber": NASTY, "home": "c", "wanted": counts[NASTY], "on_time": 6.0,
                 "on_time_share": 0.6, "on_time_share_low": 0.3, "on_time_share_high": 0.85, "earning": 8.0},
    ])  # fmt: skip
    put_rows(folder, ADMISSIONS, [
        {"subscriber": NASTY, "home": "c", "pattern": "#", "reliability": 0.9, "predicted_share": 0.7,
         "admitted": False, "reason": "0.7 < 0.9", "time_s": 1.0},
    ])  # fmt: skip
    published = {"publisher": "p", "topic": "t", "size_kb": 1.0, "deadline_s": float("inf"), "wanted": 2,
                 "stored": 2, "matching_s": 0.001, "broker": "a", "origin": "a"}  # fmt: skip
    put_rows(folder, EVENTS, [
        published | {"number": number, "time_s": 100.0 + number, "share": 1.0, "content": '{"x": 1}'}
        for number in range(1, 10)
    ] + [published | {"number": 10, "time_s": 110.0, "share": 0.5, "content": '{"x": -1}'}])  # fmt: skip
    put_rows(folder, WAIT_DISTRIBUTIONS, [])
    put_rows(folder, BROKERS, [])
    (folder / FILE).write_text(json.dumps(FULL_RUN))
    return tables


def make_empty_tables(tables: Path) -> Path:
    """Write tables of a network in which nothing ever happened."""
    folder = tables / "current"
    for table in (EVENTS, WAITS, TRANSFERS, DELIVERIES, DROPS, LINKS, PUBLISHERS, SUBSCRIPTIONS, RELIABILITY,
                  ADMISSIONS, WAIT_DISTRIBUTIONS, BROKERS):  # fmt: skip
        (folder / table.name).mkdir(parents=True)
    (folder / FILE).write_text(json.dumps(EMPTY_RUN))
    return tables
