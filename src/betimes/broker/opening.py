"""How does a hub begin? Empty, or with what its store file holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from betimes.broker.access.authentication import Gate
from betimes.broker.core.hub import Hub
from betimes.broker.core.restore import restore
from betimes.broker.durability.store import Store
from betimes.broker.storage.sqlite_file import StoreFile
from betimes.model.server_settings import ServerSettings


@contextmanager
def open_hub(
    settings: ServerSettings, gate: Gate, *, now_s: float, wall_s: float
) -> Iterator[tuple[Hub, StoreFile | None]]:
    """Open the hub that the settings ask for, and its file, which is closed in the end."""
    if settings.store is None:
        hub = Hub(settings.name, gate=gate, limits=settings.limits)
        hub.first_number = int(wall_s * 1e6)  # numbers of an earlier run are not given again
        _keep(hub, settings)
        yield hub, None
        return
    file = StoreFile(settings.store, sync=settings.store_sync)
    try:
        store = Store(file.write)
        file.make(store.tables)
        hub = Hub(settings.name, gate=gate, limits=settings.limits, store=store)
        restore(hub, file.rows, source=settings.store, now_s=now_s, wall_s=wall_s)
        store.commit()
        _keep(hub, settings)
        yield hub, file
    finally:
        file.close()


def _keep(hub: Hub, settings: ServerSettings) -> None:
    """Begin to keep what is published, if that is asked for, now that its first number is known."""
    if settings.buffer is not None:
        hub.keep_for_return(settings.buffer)
