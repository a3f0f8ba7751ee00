"""The checker of chaos runs: it judges a network of brokers by the logs of its clients, and by nothing else.

It knows nothing of Betimes. Clients log what they published, what was acknowledged, what they got and how
their connections went; `judge` compares these with what MQTT and Betimes state:

- an acknowledged message of QoS 1 or 2 reaches every durable subscriber of its topic;
- a message of QoS 2 reaches a subscriber of QoS 2 once;
- a durable session is present at every reconnection;
- a semi-durable subscriber gets a message, or is told of a gap that covers it;
- what is published once all has healed reaches every subscriber, whatever its kind and QoS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace


@dataclass(slots=True)
class Log:
    """What the clients of one run wrote down. A message is known by its payload."""

    sent: dict[str, int] = field(default_factory=dict)  # QoS by message
    earlier: set[str] = field(default_factory=set)  # sent in an earlier round
    acknowledged: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    repeatable: set[str] = field(default_factory=set)  # sent anew after a lost session: may come twice
    received: dict[str, Counter[str]] = field(default_factory=dict)  # by subscriber
    durable: dict[str, int] = field(default_factory=dict)  # QoS by durable subscriber
    semi_durable: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)
    is_calm: bool = False  # the network has had its time to heal
    calm: set[str] = field(default_factory=set)  # what is sent from then on
    # The ids that brokers gave a message: several, where its publisher repeated it at another broker.
    numbered: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    ids: dict[str, Counter[tuple[str, int]]] = field(default_factory=dict)  # got, by semi-durable subscriber
    gaps: dict[str, list[tuple[str, int, int]]] = field(default_factory=dict)  # origin, first, last
    connections: int = 0
    refusals: Counter[str] = field(default_factory=Counter)  # of CONNECT, by reason
    sessions_lost: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    trace: list[str] | None = None  # what happened, for whoever looks for a fault; None: not kept

    def note(self, now_s: float, text: str) -> None:
        """Add a line to the trace, if there is one."""
        if self.trace is not None:
            self.trace.append(f"{now_s:.3f} {text}")

    @property
    def deliveries(self) -> int:
        """Return how many messages came."""
        return sum(counts.total() for counts in self.received.values())

    def begin(self) -> None:
        """Begin a round, when all that was sent before has come: forget it."""
        self.earlier.update(self.sent)
        self.sent.clear()
        self.numbered.clear()
        for gone in (self.acknowledged, self.refused, self.repeatable, self.calm):
            gone.clear()
        for counts in self.received.values():
            counts.clear()
        for ids in self.ids.values():
            ids.clear()
        for told in self.gaps.values():
            told.clear()
        self.connections = 0
        self.refusals.clear()
        self.sessions_lost.clear()
        self.faults.clear()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the checker found; `violations` are named."""

    sent: int
    acknowledged: int
    deliveries: int
    repeated: int  # of QoS 1, which is allowed
    connections: int
    faults: Counter[str]
    gaps: int
    told: int  # messages that semi-durable subscribers lost, and were told of
    violations: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Tell whether nothing that was promised was broken."""
        return not self.violations

    def __str__(self) -> str:
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items()))
        head = (
            f"{self.sent} sent, {self.acknowledged} acknowledged, {self.deliveries} deliveries "
            f"({self.repeated} repeated at QoS 1), {self.connections} connections, "
            f"{self.gaps} gaps that tell of {self.told} lost to semi-durable subscribers; "
            f"faults: {faults or 'none'}"
        )
        return "\n".join([head, *(self.violations or ("no violation",))])


def judge(log: Log) -> Verdict:
    """Return what is to be said of a run, after everything has healed and the queues are empty."""
    violations = [*_lost(log), *_doubled(log), *_untold(log), *_not_served(log)]
    violations += [f"session lost: {each}" for each in log.sessions_lost]
    repeated = sum(
        count - 1
        for client, counts in log.received.items()
        for message, count in counts.items()
        if count > 1 and min(log.sent.get(message, 0), log.durable.get(client, 0)) == 1
    )
    return Verdict(
        sent=len(log.sent),
        acknowledged=len(log.acknowledged),
        deliveries=log.deliveries,
        repeated=repeated,
        connections=log.connections,
        faults=Counter(log.faults),
        gaps=sum(map(len, log.gaps.values())),
        told=sum(
            len(log.acknowledged - log.received.get(client, Counter()).keys()) for client in log.semi_durable
        ),
        violations=tuple(violations),
    )


def with_more(verdict: Verdict, violations: Iterable[str]) -> Verdict:
    """Return a verdict with what was seen of the brokers."""
    return replace(verdict, violations=(*verdict.violations, *violations))


def _lost(log: Log) -> Iterable[str]:
    for client in log.durable:
        missing = sorted(log.acknowledged - log.received.get(client, Counter()).keys())
        if missing:
            log.note(0.0, f"lost to {client}: {' '.join(missing)}")
            yield f"lost: {client} did not get {len(missing)} acknowledged messages: {_some(missing)}"


def _doubled(log: Log) -> Iterable[str]:
    for client, counts in log.received.items():
        qos_max = log.durable.get(client, 0)
        doubled = sorted(
            message
            for message, count in counts.items()
            if count > 1 and min(log.sent.get(message, 0), qos_max) == 2 and message not in log.repeatable
        )
        if doubled:
            yield f"doubled: {client} got {len(doubled)} messages of QoS 2 twice: {_some(doubled)}"
        # One that resumes gets all that is kept of a broker that it did not know, however old.
        known = log.sent.keys() | log.earlier if client in log.semi_durable else log.sent.keys()
        unknown = sorted(counts.keys() - known)
        if unknown:
            yield f"invented: {client} got {_some(unknown)}"


def _untold(log: Log) -> Iterable[str]:
    """Look for losses of semi-durable subscribers that no gap tells of."""
    for client in sorted(log.semi_durable):
        got, gaps = log.received.get(client, Counter()), log.gaps.get(client, [])
        untold = sorted(
            message
            for message in log.acknowledged - got.keys()
            if message in log.numbered and not _is_told(log.numbered[message], gaps)
        )
        if untold:
            yield f"untold: {client} missed {len(untold)} messages without a gap: {_some(untold)}"
        doubled = sorted(
            f"{origin}:{number}" for (origin, number), count in log.ids.get(client, {}).items() if count > 1
        )
        if doubled:
            yield f"doubled: {client}, which resumes, got {len(doubled)} ids twice: {_some(doubled)}"


def _not_served(log: Log) -> Iterable[str]:
    """Look for what was sent after everything had healed, and did not come."""
    for client in sorted({*log.plain, *log.semi_durable, *log.durable}):
        missing = sorted(log.calm - log.refused - log.received.get(client, Counter()).keys())
        if missing:
            yield f"not served: {client} missed {len(missing)} sent after all had healed: {_some(missing)}"


def _is_told(numbered: set[tuple[str, int]], gaps: list[tuple[str, int, int]]) -> bool:
    return all(
        any(origin == each and first <= number <= last for each, first, last in gaps)
        for origin, number in numbered
    )


def _some(messages: list[str]) -> str:
    return ", ".join(messages[:6]) + (" …" if len(messages) > 6 else "")
