"""The order in which passwords are checked: in turns by address, and by user within an address.

A check takes tens of milliseconds of processor time on purpose. A client that tries passwords on many
connections waits for itself, not in front of clients elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from betimes.broker.core.connection import Connection


class LoginQueue:
    """Connections whose password is to be checked. Each operation is O(1)."""

    def __init__(self) -> None:
        self._by_address: OrderedDict[str, OrderedDict[str, deque[Connection]]] = OrderedDict()

    def put(self, connection: Connection) -> None:
        """Add a connection; its CONNECT waits."""
        assert connection.unproven is not None, "nothing to prove"
        users = self._by_address.setdefault(connection.peer.rpartition(":")[0], OrderedDict())
        users.setdefault(connection.unproven.username or "", deque()).append(connection)

    def take(self) -> Connection | None:
        """Take the connection whose turn it is, of those that still wait; None: there is none."""
        while self._by_address:
            address, users = self._by_address.popitem(last=False)
            user, waiting = users.popitem(last=False)
            connection = waiting.popleft()
            if waiting:
                users[user] = waiting
            if users:
                self._by_address[address] = users
            if not connection.closing:
                return connection
        return None
