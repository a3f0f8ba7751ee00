"""The account of each link of a node: what is reserved on it, and until when (004, section 5.3).

One account book holds the links out of a node, on which the node alone decides. Another mirrors the links
into it: all that is reserved there was requested by this node, so the node knows without a message how much
room its neighbours have for it. Bandwidths are whole bytes per second, so a release returns exactly what
was reserved. Flows of one trunk use a link's bandwidth once. A reservation is soft state: it lapses unless
it is refreshed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from betimes.reservations.flow_names import read_flow, trunk_of

PROMISES_MAX = 100_000  # on the links of one node


class Instead(NamedTuple):
    """What is available on links that cannot take the requested bandwidth; 0 for nothing."""

    room_bytes_per_s: int = 0  # that is free
    shared_bytes_per_s: int = 0  # that other subscribers reserved for the same events, and that can be shared
    is_short: bool = True  # there was such a link
    is_cut: bool = False  # a search stopped before it had examined every link
    is_met: bool = False  # a node on the route has the flow, but so late that a separate route may be faster
    is_passing: bool = False  # a reservation on such a link will soon be released

    def or_better(self, other: Instead) -> Instead:
        """Return the larger of both.

        >>> Instead(5, 54).or_better(Instead(9, 0)) == Instead(9, 54)
        True
        """
        return Instead._make(map(max, self, other))


NOTHING = Instead(is_short=False)


@dataclass(slots=True)
class _Promise:
    bytes_per_s: int
    lapses_s: float
    is_leaving: bool = False


@dataclass(slots=True)
class _Trunk:
    bytes_per_s: int
    flows: int = 0


class Reservations:
    """The reservations on the links of one node in one direction, by neighbour and flow."""

    def __init__(self, capacity_bytes_per_s: Callable[[str], int]) -> None:
        self._capacity_bytes_per_s = capacity_bytes_per_s
        self._promised: dict[str, dict[str, _Promise]] = {}  # by neighbour, by flow
        self._trunks: dict[str, dict[str, _Trunk]] = {}  # likewise, by trunk
        self._sum: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Return the other ends of links that have reservations."""
        return tuple(self._promised)

    def promised(self, neighbour: str) -> int:
        """Return the reserved bandwidth of a link, in bytes per second."""
        return self._sum.get(neighbour, 0)

    def room(self, neighbour: str) -> int:
        """Return the free bandwidth of a link, in bytes per second."""
        if self._count >= PROMISES_MAX:
            return 0
        return max(0, self._capacity_bytes_per_s(neighbour) - self.promised(neighbour))

    def fits(self, flow: str, neighbour: str, bytes_per_s: int) -> bool:
        """Return whether a link can take a flow: it has room, or the flow's trunk is reserved already."""
        trunk = self._trunks.get(neighbour, {}).get(trunk_of(flow))
        if trunk is not None and self._count < PROMISES_MAX:
            return bytes_per_s <= trunk.bytes_per_s
        return bytes_per_s <= self.room(neighbour)

    def instead(self, flow: str, neighbour: str) -> Instead:
        """Return what a link has for a flow that does not fit: the rest, or a share of another's."""
        own = read_flow(trunk_of(flow))  # None: it shares with no other flow
        trunks = [] if own is None else map(read_flow, self._trunks.get(neighbour, ()))
        shared = [
            each.bytes_per_s
            for each in trunks
            if each is not None and own is not None and each[:2] == own[:2]  # type and publisher
        ]
        is_passing = any(each.is_leaving for each in self._promised.get(neighbour, {}).values())
        return Instead(self.room(neighbour), max(shared, default=0), is_passing=is_passing)

    def holds(self, flow: str, neighbour: str) -> bool:
        """Return whether a flow has a reservation on a link."""
        return flow in self._promised.get(neighbour, ())

    def promise(self, flow: str, neighbour: str, bytes_per_s: int, lapses_s: float = math.inf) -> bool:
        """Reserve bandwidth for a flow if there is room, and return whether there was; once for each flow."""
        assert bytes_per_s > 0, "a reservation of nothing"
        assert not self.holds(flow, neighbour), "a flow is reserved once on a link"
        if not self.fits(flow, neighbour, bytes_per_s):
            return False
        self._promised.setdefault(neighbour, {})[flow] = _Promise(bytes_per_s, lapses_s)
        trunks = self._trunks.setdefault(neighbour, {})
        trunk = trunks.get(trunk_of(flow))
        if trunk is None:
            trunk = trunks[trunk_of(flow)] = _Trunk(bytes_per_s)
            self._sum[neighbour] = self.promised(neighbour) + bytes_per_s
        trunk.flows += 1
        self._count += 1
        return True

    def refresh(self, flow: str, neighbour: str, lapses_s: float) -> bool:
        """Extend a reservation to a later time; return whether there is one."""
        found = self._promised.get(neighbour, {}).get(flow)
        if found is None:
            return False
        found.lapses_s = max(found.lapses_s, lapses_s)
        return True

    def leave(self, flow: str, neighbour: str) -> None:
        """Note that a reservation will soon be released; until then it holds."""
        found = self._promised.get(neighbour, {}).get(flow)
        if found is not None:
            found.is_leaving = True

    def release(self, flow: str, neighbour: str) -> bool:
        """Release a reservation; return whether there was one."""
        here = self._promised.get(neighbour, {})
        found = here.pop(flow, None)
        if found is None:
            return False
        self._count -= 1
        trunks = self._trunks[neighbour]
        trunk = trunks[trunk_of(flow)]
        trunk.flows -= 1
        if not trunk.flows:
            del trunks[trunk_of(flow)]
            self._sum[neighbour] -= trunk.bytes_per_s
        if not here:
            del self._promised[neighbour], self._trunks[neighbour], self._sum[neighbour]
        return True

    def lapsed(self, now_s: float) -> list[tuple[str, str]]:
        """Release what was not refreshed in time; return flows and neighbours."""
        found = [
            (flow, neighbour)
            for neighbour, here in self._promised.items()
            for flow, promise in here.items()
            if promise.lapses_s <= now_s
        ]
        for flow, neighbour in found:
            self.release(flow, neighbour)
        return found
