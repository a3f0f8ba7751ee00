"""Which flows are owed bandwidth on a link just now (004, section 5.3)?

What was promised to a flow is credited to it as time passes, up to a second's worth, and spent when one of
its messages goes. While a flow has credit, its longest waiting message goes before all else; without, it is
as good as any other. So nothing unreserved takes a flow's share, a flow takes no more than its share from
others, and a link is never idle while something waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from betimes.model.events import Event

CREDIT_S_MAX = 1.0  # a flow that was silent may send so much at once, before all others


@dataclass(slots=True)
class _Account:
    kb_per_s: float
    credit_kb: float
    at_s: float

    def settle(self, now_s: float) -> float:
        """Return the credit by now."""
        gained_kb = max(0.0, now_s - self.at_s) * self.kb_per_s
        self.credit_kb = min(self.credit_kb + gained_kb, CREDIT_S_MAX * self.kb_per_s)
        self.at_s = max(self.at_s, now_s)
        return self.credit_kb


def flow_of(event: Event) -> str:
    """Return the flow that an event belongs to: its topic, or where there is none, its publisher."""
    return event.topic or event.publisher


class PromisedShares:
    """What one broker has promised on its links, by neighbour and flow, and how far it has kept that."""

    def __init__(self) -> None:
        self._accounts: dict[str, dict[str, _Account]] = {}
        self.spent_kb: dict[str, float] = {}  # of promises, since the start, by neighbour

    def __bool__(self) -> bool:
        return bool(self._accounts)

    @property
    def flows(self) -> frozenset[str]:
        """Return every flow that has a share on some link."""
        return frozenset([flow for here in self._accounts.values() for flow in here])

    def promise(self, neighbour: str, kb_per_s: Mapping[str, float], now_s: float) -> None:
        """Set what is promised on a link from now on, by flow; who had a share keeps its credit."""
        before = self._accounts.pop(neighbour, {})
        here = {}
        for flow, share in kb_per_s.items():
            assert share > 0.0, "a promise of nothing"
            known = before.get(flow)
            credit_kb = CREDIT_S_MAX * share if known is None else known.settle(now_s)
            here[flow] = _Account(share, min(credit_kb, CREDIT_S_MAX * share), now_s)
        if here:
            self._accounts[neighbour] = here

    def due(self, neighbour: str, now_s: float) -> list[str]:
        """Return the flows that have credit on a link, those first that are owed the most time."""
        here = self._accounts.get(neighbour)
        if not here:
            return []
        owed = [(account.settle(now_s) / account.kb_per_s, flow) for flow, account in here.items()]
        return [flow for credit_s, flow in sorted(owed, key=lambda each: -each[0]) if credit_s > 0.0]

    def spend(self, neighbour: str, event: Event, now_s: float) -> None:
        """Note that a message went over a link; what goes without credit took nobody's share."""
        account = self._accounts.get(neighbour, {}).get(flow_of(event))
        if account is not None and account.settle(now_s) > 0.0:
            account.credit_kb -= event.size_kb
            self.spent_kb[neighbour] = self.spent_kb.get(neighbour, 0.0) + event.size_kb
