"""Betimes: publish/subscribe for information that goes stale."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betimes.client.connection import connect as connect

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load the client when somebody asks for it: most of what imports this package does not."""
    if name == "connect":
        from betimes.client.connection import connect

        return connect
    raise AttributeError(f"module 'betimes' has no attribute {name!r}")
