"""The state of a network: shares and rates, from brokers' metrics that are polled."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from betimes.model.errors import BetimesError

HISTORY_MAX = 300  # moments in the history
RATE_OVER_S = 5.0  # the period over which rates are computed
SILENT_AFTER_S = 5.0  # one late or missed answer does not mean that a broker is down
NOT_WANTED = "refused"  # no subscriber loses a publication that the broker refused


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFacts:
    """A link as the metrics of its sender describe it."""

    s_per_kb: float = 0.0
    sent_kb: float = 0.0
    is_up: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """The metrics of a broker: counters since its start, and current values."""

    name: str
    uptime_s: float = 0.0
    received: float = 0.0
    sent: float = 0.0
    earned: float = 0.0
    queue: float = 0.0  # messages that wait for links
    lost: Mapping[str, float] = field(default_factory=dict)
    links: Mapping[str, LinkFacts] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkNow:
    """The current load of a link."""

    source: str
    target: str
    load: float  # the share of time in use
    is_up: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The whole network at one moment."""

    at_s: float
    sent: float
    lost: float
    on_time_share: float | None  # over the last seconds; None: nothing was wanted
    sent_per_s: float
    lost_per_s: float
    earned: float
    earned_per_s: float


class _Look(NamedTuple):
    at_s: float
    facts: BrokerFacts


def read_metrics(text: str) -> BrokerFacts:
    """Parse a broker's metrics; a BetimesError if the text is something else."""
    plain: dict[str, float] = {}
    lost: dict[str, float] = {}
    links: dict[str, dict[str, float]] = {}
    name = ""
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if "reason" in sample.labels:
                    lost[sample.labels["reason"]] = sample.value
                elif "neighbour" in sample.labels:
                    links.setdefault(sample.labels["neighbour"], {})[sample.name] = sample.value
                elif sample.name == "betimes_broker_info":
                    name = sample.labels.get("name", "")
                else:
                    plain[sample.name] = sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise BetimesError("these are not metrics in Prometheus format") from error
    if "betimes_uptime_seconds" not in plain or not name:
        raise BetimesError("these are not metrics of a Betimes broker")
    return BrokerFacts(
        name=name,
        uptime_s=plain["betimes_uptime_seconds"],
        received=plain.get("betimes_publications_received_total", 0.0),
        sent=plain.get("betimes_publications_sent_total", 0.0),
        earned=plain.get("betimes_earned_total", 0.0),
        queue=plain.get("betimes_link_queue_messages", 0.0),
        lost={reason: count for reason, count in lost.items() if reason != NOT_WANTED},
        links={
            neighbour: LinkFacts(
                s_per_kb=found.get("betimes_link_seconds_per_kilobyte", 0.0),
                sent_kb=found.get("betimes_link_sent_bytes_total", 0.0) / 1000.0,
                is_up=found.get("betimes_link_up", 1.0) > 0.0,
            )
            for neighbour, found in links.items()
        },
    )


class BrokerWatch:
    """The last metrics of each broker, by its metrics address, and a history of the whole network."""

    def __init__(self) -> None:
        self.brokers: dict[str, BrokerFacts] = {}  # by address
        self.silent: dict[str, str] = {}  # the reason why a broker is silent, by address
        self.history: deque[Moment] = deque(maxlen=HISTORY_MAX)
        self._looks: dict[str, deque[_Look]] = {}
        self._names: dict[str, str] = {}  # of silent brokers, by address

    def heard(self, address: str, facts: BrokerFacts, at_s: float) -> None:
        """Record the metrics of a broker."""
        self.silent.pop(address, None)
        looks = self._looks.setdefault(address, deque())
        if looks and facts.uptime_s < looks[-1].facts.uptime_s:
            looks.clear()  # the broker restarted, and its counters too
        looks.append(_Look(at_s, facts))
        while len(looks) > 2 and looks[1].at_s <= at_s - RATE_OVER_S:
            looks.popleft()
        self.brokers[address] = facts

    def not_heard(self, address: str, why: str, at_s: float) -> None:
        """Record that a broker does not answer; after a while, forget its last metrics."""
        looks = self._looks.get(address)
        if looks and at_s - looks[-1].at_s < SILENT_AFTER_S:
            return
        gone = self.brokers.pop(address, None)
        if gone is not None:
            self._names[address] = gone.name
        name = self._names.get(address)
        self.silent[address] = why if name is None else f"{name} answered before, {why}"
        self._looks.pop(address, None)

    def note_moment(self, at_s: float) -> Moment:
        """Compute the totals of the network, and add them to the history."""
        sent = sum(each.sent for each in self.brokers.values())
        lost = sum(self.lost().values())
        sent_per_s, lost_per_s, earned_per_s = (self._rate(name) for name in ("sent", "lost", "earned"))
        wanted_per_s = sent_per_s + lost_per_s
        moment = Moment(
            at_s=at_s,
            sent=sent,
            lost=lost,
            on_time_share=sent_per_s / wanted_per_s if wanted_per_s > 0.0 else None,
            sent_per_s=sent_per_s,
            lost_per_s=lost_per_s,
            earned=sum(each.earned for each in self.brokers.values()),
            earned_per_s=earned_per_s,
        )
        self.history.append(moment)
        return moment

    def lost(self) -> Counter[str]:
        """Return the messages lost since the brokers started, by reason."""
        total: Counter[str] = Counter()
        for each in self.brokers.values():
            total.update({reason: count for reason, count in each.lost.items() if count})
        return total

    def links(self) -> list[LinkNow]:
        """Return the current state of the links, sorted by name."""
        found = []
        for address, facts in self.brokers.items():
            first, last = self._looks[address][0], self._looks[address][-1]
            over_s = last.at_s - first.at_s
            for neighbour, link in facts.links.items():
                before = first.facts.links.get(neighbour, LinkFacts())
                busy_s = max(link.sent_kb - before.sent_kb, 0.0) * link.s_per_kb
                load = min(busy_s / over_s, 1.0) if over_s > 0.0 else 0.0
                link_now = LinkNow(source=facts.name, target=neighbour, load=load, is_up=link.is_up)
                found.append(link_now)
        return sorted(found, key=lambda each: (each.source, each.target))

    def _rate(self, name: str) -> float:
        total = 0.0
        for looks in self._looks.values():
            over_s = looks[-1].at_s - looks[0].at_s
            if over_s > 0.0:
                total += (_count(looks[-1].facts, name) - _count(looks[0].facts, name)) / over_s
        return total


def _count(facts: BrokerFacts, name: str) -> float:
    return sum(facts.lost.values()) if name == "lost" else float(getattr(facts, name))
