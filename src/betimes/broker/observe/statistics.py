"""Statistics of a broker at one moment, for metrics, $SYS and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter

from betimes.broker.admission.admission import AdmissionControl
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.counters import Counters
from betimes.broker.guarantees.guarantees import Guarantees
from betimes.broker.handover.incoming import Handovers
from betimes.broker.links.federation import Federation, LinkHealth
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.model.telemetry import Reason

# There may be very many sessions, and no client is served meanwhile: no line of Python for each of them.
_CONNECTION, _QUEUE_BYTES = attrgetter("connection"), attrgetter("queue_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferStatistics:
    """The replay buffer: what it holds, and what became of it since the start."""

    messages: int
    size_bytes: int
    overwritten: int
    resumed: int  # subscriptions
    replayed: int  # messages, to those
    gaps_told: int  # likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What there is at one moment, and what there was since the start."""

    uptime_s: float
    connected: int  # clients
    sessions: int  # of clients that are connected, and of others
    subscriptions: int
    retained: int
    queue_bytes: int  # of messages that wait for their client
    accounts_bytes: int  # of all that is charged to accounts
    accounts_bytes_max: int
    counters: Counters  # of packets, bytes and publications; they go on counting
    lost: Mapping[Reason, int]  # publications, or copies of them, that did not arrive
    broker: str = ""  # its name
    earned: float = 0.0  # what subscribers pay for all that was sent to them, which was in time
    links_carried: Mapping[str, tuple[int, float]] = field(default_factory=dict)  # messages, kilobytes
    admission: tuple[int, int] | None = None  # given and refused; None: there is no control centre
    link_health: Mapping[str, LinkHealth] = field(default_factory=dict)  # by neighbour
    links_s_per_kb: Mapping[str, float] = field(default_factory=dict)  # to other brokers that are up
    waiting_for_links: int = 0  # messages
    waiting_without_route: int = 0  # of those, whose destinations no link leads to
    promised_bytes_per_s: Mapping[str, int] = field(default_factory=dict)  # on links to others
    reserved_kb: Mapping[str, float] = field(default_factory=dict)  # that went to others by such promises
    guarantees: tuple[int, int] | None = None  # given and refused; None: there is no network
    handed_over: tuple[int, int] | None = None  # sessions, to here and from here; None: there is no network
    kept: BufferStatistics | None = None  # None: there is no replay buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedParts:
    """The parts of a broker that statistics are gathered from; most may be missing."""

    hub: Hub
    federation: Federation | None = None
    admission: AdmissionControl | None = None
    guarantees: Guarantees | None = None
    handovers: Handovers | None = None


def gathered(observed: ObservedParts, now_s: float) -> Statistics:
    """Return how the broker is doing."""
    hub, federation = observed.hub, observed.federation
    admission, guarantees, handovers = observed.admission, observed.guarantees, observed.handovers
    sessions, counters = hub.sessions.values(), hub.counters
    subscriptions, retained = hub.held
    return Statistics(
        uptime_s=now_s - counters.started_s,
        connected=len(sessions) - list(map(_CONNECTION, sessions)).count(None),
        sessions=len(sessions),
        subscriptions=subscriptions,
        retained=retained,
        queue_bytes=sum(map(_QUEUE_BYTES, sessions)),
        accounts_bytes=hub.memory.taken_bytes,
        accounts_bytes_max=hub.memory.bytes_max,
        counters=counters,
        lost={reason: counters.lost[reason] for reason in Reason},
        broker=hub.name,
        earned=counters.sent - counters.resent + counters.premium,
        links_carried=dict(counters.links),
        admission=None if admission is None else (admission.admitted, admission.refused),
        link_health={} if federation is None else federation.link_health(now_s),
        links_s_per_kb={} if federation is None else federation.speeds_s_per_kb,
        waiting_for_links=0 if federation is None else federation.broker.queue_length,
        waiting_without_route=0 if federation is None else federation.broker.waiting_without_route(),
        promised_bytes_per_s={} if federation is None else federation.reserved.promised_bytes_per_s,
        reserved_kb={} if federation is None else federation.broker.shares.spent_kb,
        guarantees=None if guarantees is None else (guarantees.accepted, guarantees.refused),
        handed_over=None if handovers is None else (handovers.taken, handovers.departures.count),
        kept=None if hub.replay is None else _kept(hub.replay),
    )


def _kept(replay: ReplayBuffer) -> BufferStatistics:
    buffer = replay.buffer
    return BufferStatistics(
        messages=buffer.messages,
        size_bytes=buffer.size_bytes,
        overwritten=buffer.overwritten,
        resumed=replay.resumed,
        replayed=replay.replayed,
        gaps_told=replay.gaps_told,
    )
