"""What does a process do in an overlay of peers? Its peers decide, its links carry, its clients say and get.

The decisions are those of `node.Peer`, the very one that the simulator drives: whom to ask for a place, whom
to feed, what to receive beyond what is wanted. Here it meets real links, and gossip by which processes come
to know of each other. Time is handed in, in seconds; peers count it in cycles.
"""

from __future__ import annotations

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.links.packets import Arrival, LinkError, arrived_publication
from betimes.broker.peers.delays import PeerDelays
from betimes.broker.peers.link import FROM, GOSSIP_TOPIC, LETTER_TOPIC, PeerLink
from betimes.broker.peers.local_demand import PeerDemand
from betimes.broker.peers.outbox import PeerOutbox
from betimes.broker.peers.packets import (
    Descriptor,
    Letter,
    gossip_text,
    letter_text,
    read_gossip,
    read_letter,
)
from betimes.broker.peers.settings import PUBLISHES, PeerPlan, address_of
from betimes.broker.peers.view import PeerView
from betimes.matching.dz.expressions import WHOLE, DzSet, covers, merged
from betimes.matching.dz.spaces import cells_dz, event_cells, filter_dz
from betimes.model.overlay_settings import Metric
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import DisconnectCode, Refusal
from betimes.peers.messages import Connect, Got, Notice, PeerAccepted, PeerEffect, PeerRefresh, SendToPeer
from betimes.peers.parents import PUBLISHER_DELAY
from betimes.peers.peer import Peer

log = logging.getLogger(__name__)

COMPLAINTS_MAX = 20  # of which the newest are shown
JOIN_AGAIN_CYCLES = 16  # now and then the first contact is asked too, so that parts find together
COUNTED_CYCLES = 10.0  # of publishing, to say how much that is

Deliver = Callable[[Publication, float], None]
Lose = Callable[[Reason, int], None]
Dial = Callable[["PeerOverlay", str], None]  # an address; the overlay hears whether a peer is there


class PeerTally:
    """What came, since the start."""

    def __init__(self) -> None:
        self.published = 0
        self.wanted = 0
        self.in_time = 0
        self.delay_sum = self.delay_most = 0.0
        self.lost: Counter[Reason] = Counter()  # events, or copies of them, that were not sent


class PeerOverlay:
    """One process among others."""

    is_alone = False

    def __init__(
        self,
        plan: PeerPlan,
        *,
        life: int,
        packet_bytes_max: int,
        deliver: Deliver,
        lose: Lose,
        chance: Callable[[], float],
        dial: Dial,
        refused: Callable[[str], None],
        now_s: float,
    ) -> None:
        self.plan = plan
        self.address = plan.address
        self.life = life
        self.packet_bytes_max = packet_bytes_max
        self._deliver = deliver
        self._lose = lose
        self._chance = chance
        self._space = plan.agreement.space
        self._is_timed = plan.agreement.metric is Metric.TIME
        self.mail = PeerOutbox(lambda address: dial(self, address))
        self.delays = PeerDelays(self.mail, is_timed=self._is_timed)
        self.view = PeerView(plan.address, chance, self.delays.to)
        self.wishes = PeerDemand(self._space, plan.wanted)
        self.subscriber = self._peer(now_s, plan.delay_max)
        self.publisher: Peer | None = None
        self.tally = PeerTally()
        self.complaints: deque[str] = deque(maxlen=COMPLAINTS_MAX)
        self._refused = refused  # hears that the peers it was to join refuse it
        self._cycle_at_s = now_s
        self._cycles = 0
        self._issued = life
        self._counted, self._counted_since_s = 0, now_s
        if plan.published is not None:
            parts = [dz for each in plan.published for dz in filter_dz(self._space, each, 64)]
            self._begin_to_publish(merged(parts), now_s)

    def _peer(self, now_s: float, delay_max: float, advertised: DzSet = ()) -> Peer:
        publishes = delay_max == PUBLISHER_DELAY
        return Peer(
            self.address + PUBLISHES * publishes,
            self.plan.settings,
            self._space,
            self.view,
            delay_max=delay_max,
            advertised=advertised,
            chance=self._chance,
            now=now_s / self.plan.cycle_s,
        )

    def _begin_to_publish(self, advertised: DzSet, now_s: float) -> None:
        self.publisher = self._peer(now_s, PUBLISHER_DELAY, advertised)
        self.subscriber.hear_of(self.publisher.card())

    # --- what clients want and publish here

    def subscribed(self, grant: BrokerSubscription) -> None:
        """Take in what a client asks for; others hear of it in the next cycle."""
        self.wishes.add(grant)

    def unsubscribed(self, grant: BrokerSubscription) -> None:
        """Take in that a client asks for something no longer."""
        self.wishes.remove(grant)

    def publish(self, publication: Publication, now_s: float) -> int:
        """Send an event that a client published to the children that want it; return how many they are."""
        if self.publisher is None:
            self._begin_to_publish((WHOLE,), now_s)
        assert self.publisher is not None, "it has begun"
        cells = event_cells(self._space, publication.attributes())
        dz = cells_dz(self._space, cells)
        if not any(covers(each, dz) for each in self.publisher.dz):
            self._lost(Reason.REFUSED)  # nobody expects it from here
            return 0
        self.tally.published += 1
        self._counted += 1
        notice = Notice(self.publisher.name, publication.number, dz, cells, 0.0, content=publication)
        effects = self.publisher.publish(notice)
        self._perform(self.publisher, effects, now_s)
        return len(effects)

    # --- time

    def tick(self, now_s: float) -> None:
        """Do what is due."""
        for link in list(self.mail.links.values()):
            link.tick(now_s)
        if now_s < self._cycle_at_s:
            return
        self._cycle_at_s = max(self._cycle_at_s + self.plan.cycle_s * (0.9 + 0.2 * self._chance()), now_s)
        self._cycles += 1
        for name in self.view.forget_old(now_s):
            self._gone(name, now_s)
        self._count(now_s)
        self._gossip(now_s)
        if self.wishes.has_changed:
            self.wishes.has_changed = False
            effects = self.subscriber.want(self.wishes.boxes(), self._cycle(now_s))
            self._perform(self.subscriber, effects, now_s)
        for peer in self._peers():
            self._perform(peer, peer.act(self._cycle(now_s)), now_s)
        for link in self.mail.spare(self._needed(), now_s):
            link.end_spare(now_s)

    def wake_at_s(self) -> float:
        """Return that nothing is due between ticks."""
        return math.inf

    def settle(self, _now_s: float) -> None:
        """Do nothing: what is to be said was said."""

    def brokers(self) -> Collection[str]:
        """Return that no broker is known: peers keep nothing to resume from."""
        return ()

    def first_number_of(self, _origin: str) -> int:
        """Return that it is not known."""
        return 0

    def neighbours_down(self) -> list[str]:
        """Return that no link is missing: peers find each other."""
        return []

    def close(self, now_s: float) -> None:
        """Say goodbye to all peers."""
        for link in list(self.mail.links.values()):
            link.connection.hang_up(Refusal(DisconnectCode.SERVER_SHUTTING_DOWN.value), now_s)

    def _cycle(self, now_s: float) -> float:
        return now_s / self.plan.cycle_s

    def _count(self, now_s: float) -> None:
        """Find out how much is published here, and say so."""
        cycles = (now_s - self._counted_since_s) / self.plan.cycle_s
        if self.publisher is not None and cycles >= COUNTED_CYCLES:
            self.publisher.published_rate = self._counted / cycles if self._counted else None
            self._counted, self._counted_since_s = 0, now_s
            self.subscriber.hear_of(self.publisher.card())

    def _gossip(self, now_s: float) -> None:
        """Tell somebody of others, and ask for as much."""
        partner = self.view.partner()
        if self.plan.join and (partner is None or self._cycles % JOIN_AGAIN_CYCLES == 0):
            partner = self.plan.join[int(self._chance() * len(self.plan.join))]
        if partner is not None and partner != self.address:
            text = gossip_text(self._told(), asks=True)
            self.mail.post(partner, lambda link: link.say(GOSSIP_TOPIC, text, now_s))

    def _told(self) -> list[Descriptor]:
        """Return what others are told: of oneself, and of some others."""
        self._issued += 1
        own = [Descriptor(peer.card(), self._issued) for peer in self._peers() if peer.dz]
        return [*own, *self.view.told()]

    def _needed(self) -> set[str]:
        """Return with whom a link is needed: those who feed, and who are fed."""
        names = {name for peer in self._peers() for name in (*peer.lines.parents(), *peer.children.by_name)}
        return set(map(address_of, names))

    def _peers(self) -> list[Peer]:
        return [self.subscriber] if self.publisher is None else [self.publisher, self.subscriber]

    # --- what links report

    def answer(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Let another peer in, or say why not."""
        PeerLink(self, connection, "", now_s).answer(packet, now_s)

    def link_up(self, link: PeerLink, now_s: float) -> None:
        """Use a link, and say what waited for it."""
        link.is_up = True
        outlived = self.mail.up(link, self.address)
        if outlived is not None:
            self._gone_with(link.neighbour, now_s)
            outlived.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        log.info("link with %s is up", link.neighbour)
        for post in self.mail.take_waiting(link.neighbour):
            post(link)

    def link_down(self, link: PeerLink, now_s: float) -> None:
        """Find others, if the peer on the other side is gone."""
        was_up, link.is_up = link.is_up, False
        self.delays.keep(link)
        if not was_up:
            self.dial_failed(link.neighbour, now_s)
        elif self.mail.down(link):
            log.info("link with %s is down", link.neighbour)
            if not link.is_spare:
                self._gone_with(link.neighbour, now_s)

    def dial_failed(self, address: str, now_s: float) -> None:
        """Take a peer that cannot be reached for gone."""
        if address in self.mail.links:
            return  # it dialled us meanwhile
        self.mail.take_waiting(address)
        self._gone_with(address, now_s)

    def refused(self, address: str, text: str) -> None:
        """Note that a peer does not want us."""
        self.complain(address, f"it refuses: {text}")
        if address in self.plan.join and not self.mail.links:
            self._refused(f"{address}: {text}")

    def complain(self, neighbour: str, problem: str) -> None:
        """Write down what is wrong with a peer."""
        log.warning("peer %s: %s", neighbour, problem)
        self.complaints.append(f"{neighbour}: {problem}")

    def hear(self, link: PeerLink, payload: bytes, now_s: float) -> None:
        """Let a peer of ours take in what one of the neighbour's says."""
        letter = read_letter(payload, self._space.length)
        said = letter.said
        own = said.card.name if isinstance(said, Connect | PeerAccepted | PeerRefresh) else letter.sender
        if address_of(letter.sender) != link.neighbour or own != letter.sender:
            raise LinkError(f"{link.neighbour} speaks for {own}")
        peer = self._called(letter.to)
        if peer is not None:
            took = link.transit.delay_s if self._is_timed else 1.0
            effects = peer.receive(letter.sender, said, self._cycle(now_s), took=took)
            self._perform(peer, effects, now_s)

    def hear_gossip(self, link: PeerLink, payload: bytes, now_s: float) -> None:
        """Learn of others, and tell of some if asked."""
        descriptors, asks = read_gossip(payload, self._space.length)
        for descriptor in descriptors:
            if self.view.hear_of(descriptor, now_s) and descriptor.card.publishes:
                self.subscriber.hear_of(descriptor.card)
        if asks:
            link.say(GOSSIP_TOPIC, gossip_text(self._told(), asks=False), now_s)

    def arrive(
        self,
        link: PeerLink,
        packet: mqtt5.PublishPacket,
        arrival: Arrival,
        *,
        sender: str,
        hops: int,
        took_s: float,
        now_s: float,
    ) -> None:
        """Let a peer of ours take in an event."""
        if address_of(sender) != link.neighbour or len(arrival.destinations) != 1:
            raise LinkError(f"{link.neighbour} sends an event for {sender or 'nobody'}")
        (to,) = arrival.destinations
        peer = self._called(to)
        if peer is None:
            return
        packet.user_properties[:] = [each for each in packet.user_properties if each[0] != FROM]
        publication = arrived_publication(packet, arrival, took_s=took_s, now_s=now_s)
        cells = event_cells(self._space, publication.attributes())
        notice = Notice(
            arrival.id.origin + PUBLISHES,
            arrival.id.number,
            cells_dz(self._space, cells),
            cells,
            arrival.age_s if self._is_timed else float(hops),
            content=publication,
        )
        took = took_s if self._is_timed else 1.0
        self._perform(peer, peer.receive(sender, notice, self._cycle(now_s), took=took), now_s)

    # --- inside

    def _called(self, name: str) -> Peer | None:
        return next((peer for peer in self._peers() if peer.name == name), None)

    def _gone_with(self, address: str, now_s: float) -> None:
        for name in (address, address + PUBLISHES):
            self._gone(name, now_s)

    def _gone(self, name: str, now_s: float) -> None:
        self.view.forget(name)
        for peer in self._peers():
            peer.lost(name, self._cycle(now_s))

    def _perform(self, peer: Peer, effects: Iterable[PeerEffect], now_s: float) -> None:
        """Do what a peer decided, and what follows from it in this process."""
        waiting = deque((peer, effect) for effect in effects)
        while waiting:
            speaker, effect = waiting.popleft()
            if isinstance(effect, Got):
                self._got(effect, now_s)
            elif address_of(effect.to) != self.address:
                self._tell(speaker.name, effect, now_s)
            elif (listener := self._called(effect.to)) is not None:
                answers = listener.receive(speaker.name, effect.message, self._cycle(now_s), took=0.0)
                waiting.extend((listener, each) for each in answers)

    def _tell(self, sender: str, tell: SendToPeer, now_s: float) -> None:
        to, said = tell
        if isinstance(said, Notice):
            self._send_event(sender, to, said, now_s)
            return
        text = letter_text(Letter(sender, to, said))
        self.mail.post(address_of(to), lambda link: link.say(LETTER_TOPIC, text, now_s))

    def _send_event(self, sender: str, to: str, notice: Notice, now_s: float) -> None:
        publication = notice.content
        assert isinstance(publication, Publication), "every event here was published by somebody"
        link = self.mail.links.get(address_of(to))
        hops = 0 if self._is_timed else int(notice.delay)
        if link is None or not link.send_event(publication, sender=sender, to=to, hops=hops, now_s=now_s):
            self._lost(Reason.QUEUE_FULL if link is not None else Reason.UNREACHABLE)

    def _lost(self, reason: Reason) -> None:
        self.tally.lost[reason] += 1
        self._lose(reason, 1)

    def _got(self, got: Got, now_s: float) -> None:
        """Hand an event over to the clients that want it; what was published here they have already."""
        publication = got.notice.content
        assert isinstance(publication, Publication), "every event here was published by somebody"
        if publication.origin == self.address or not self.wishes.want(publication.attributes()):
            return
        tally = self.tally
        tally.wanted += 1
        tally.in_time += got.in_time
        tally.delay_sum += got.delay
        tally.delay_most = max(tally.delay_most, got.delay)
        self._deliver(publication, now_s)
