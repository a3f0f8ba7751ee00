"""What is promised on each link of a node, and until when (004, section 5.3)?

One ledger holds the links out of a node, which it alone decides on; another mirrors the links into it:
whatever is promised there was asked for by this node, so it knows without a message how much room its
neighbours have for it. Bandwidths are whole bytes a second, so that what is released is exactly what was
promised. Flows of one trunk take a link's bandwidth once. A promise is soft state: it lapses unless it is
refreshed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from betimes.reservations.flow_names import read_flow, trunk_of

PROMISES_MAX = 100_000  # on the links of one node


class Instead(NamedTuple):
    """What can be had on links that have not what was asked for; 0 for nothing."""

    room_bytes_per_s: int = 0  # that nobody has
    shared_bytes_per_s: int = 0  # that others have of the same events, to be shared with them
    is_short: bool = True  # there was such a link
    is_cut: bool = False  # a search was given up before all was looked at
    is_met: bool = False  # a node on the way has the flow, and so late that apart from it there may be a way
    is_passing: bool = False  # on such a link something is promised that will be given back shortly

    def or_better(self, other: Instead) -> Instead:
        """Return the most of both.

        >>> Instead(5, 54).or_better(Instead(9, 0)) == Instead(9, 54)
        True
        """
        return Instead(
            max(self.room_bytes_per_s, other.room_bytes_per_s),
            max(self.shared_bytes_per_s, other.shared_bytes_per_s),
            self.is_short or other.is_short,
            self.is_cut or other.is_cut,
            self.is_met or other.is_met,
            self.is_passing or other.is_passing,
        )


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
    """The promises on the links of one node in one direction, by neighbour and flow."""

    def __init__(self, capacity_bytes_per_s: Callable[[str], int]) -> None:
        self._capacity_bytes_per_s = capacity_bytes_per_s
        self._promised: dict[str, dict[str, _Promise]] = {}  # by neighbour, by flow
        self._trunks: dict[str, dict[str, _Trunk]] = {}  # likewise
        self._sum: dict[str, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def neighbours(self) -> tuple[str, ...]:
        """Return the other ends of links on which something is promised."""
        return tuple(self._promised)

    def promised(self, neighbour: str) -> int:
        """Return how much is promised on a link, in bytes a second."""
        return self._sum.get(neighbour, 0)

    def room(self, neighbour: str) -> int:
        """Return how much can still be promised on a link, in bytes a second."""
        if self._count >= PROMISES_MAX:
            return 0
        return max(0, self._capacity_bytes_per_s(neighbour) - self.promised(neighbour))

    def fits(self, flow: str, neighbour: str, bytes_per_s: int) -> bool:
        """Tell whether a flow can be promised so much on a link: there is room, or its trunk has it."""
        trunk = self._trunks.get(neighbour, {}).get(trunk_of(flow))
        if trunk is not None and self._count < PROMISES_MAX:
            return bytes_per_s <= trunk.bytes_per_s
        return bytes_per_s <= self.room(neighbour)

    def instead(self, flow: str, neighbour: str) -> Instead:
        """Return what there is for a flow on a link where it does not fit: what is left, or is shared."""
        own = read_flow(trunk_of(flow))  # None: it shares with nobody
        trunks = [] if own is None else map(read_flow, self._trunks.get(neighbour, ()))
        shared = [
            each.bytes_per_s
            for each in trunks
            if each is not None and own is not None and each[:2] == own[:2]  # type and publisher
        ]
        is_passing = any(each.is_leaving for each in self._promised.get(neighbour, {}).values())
        return Instead(self.room(neighbour), max(shared, default=0), is_passing=is_passing)

    def holds(self, flow: str, neighbour: str) -> bool:
        """Tell whether something is promised to a flow on a link."""
        return flow in self._promised.get(neighbour, ())

    def promise(self, flow: str, neighbour: str, bytes_per_s: int, lapses_s: float = math.inf) -> bool:
        """Promise bandwidth to a flow if there is room, and tell whether there was; once for each flow."""
        assert bytes_per_s > 0, "a promise of nothing"
        assert not self.holds(flow, neighbour), "a flow is promised its bandwidth once"
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
        """Let a promise hold until a later time; tell whether there is one."""
        found = self._promised.get(neighbour, {}).get(flow)
        if found is None:
            return False
        found.lapses_s = max(found.lapses_s, lapses_s)
        return True

    def leave(self, flow: str, neighbour: str) -> None:
        """Note that a promise will be taken back shortly; until then it holds."""
        found = self._promised.get(neighbour, {}).get(flow)
        if found is not None:
            found.is_leaving = True

    def release(self, flow: str, neighbour: str) -> bool:
        """Take a promise back; tell whether there was one."""
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

    def release_link(self, neighbour: str) -> list[str]:
        """Take back all that is promised on a link that was lost; return the flows."""
        flows = list(self._promised.get(neighbour, ()))
        for flow in flows:
            self.release(flow, neighbour)
        return flows

    def lapsed(self, now_s: float) -> list[tuple[str, str]]:
        """Take back what nobody refreshed in time; return flows and neighbours."""
        found = [
            (flow, neighbour)
            for neighbour, here in self._promised.items()
            for flow, promise in here.items()
            if promise.lapses_s <= now_s
        ]
        for flow, neighbour in found:
            self.release(flow, neighbour)
        return found
