"""The live broker: MQTT sessions on real sockets and the real clock.

`composition.py` puts the parts together without sockets, `server.py` runs them; begin there, or with the
table of packet handlers in `core/handlers.py`. From the bottom: `access` and `storage`; `delivery`
(publications to clients); `replay`; `core` (the hub and its handlers); `durability`; `links` (other brokers);
`admission`, `guarantees`, `handover` and `peers`; `observe` (telemetry and metrics); `net` (sockets, the only
folder with a loop besides `server.py`). The decisions of scheduling, reservations and replay are in the
packages of the papers; nothing here is imported by them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from betimes.broker.server import Server as Server


def __getattr__(name: str) -> Any:
    """Load the server when it is asked for: most of what imports this package needs a part of it only."""
    if name == "Server":
        from betimes.broker.server import Server

        return Server
    raise AttributeError(f"module 'betimes.broker' has no attribute {name!r}")
