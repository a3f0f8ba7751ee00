"""Betimes: publish/subscribe for information that goes stale."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betimes.client.blocking.client import connect_sync as connect_sync
    from betimes.client.connection import connect as connect

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a client when a program asks for it: most of what imports this package does not."""
    if name == "connect":
        from betimes.client.connection import connect

        return connect
    if name == "connect_sync":
        from betimes.client.blocking.client import connect_sync

        return connect_sync
    raise AttributeError(f"module 'betimes' has no attribute {name!r}")
