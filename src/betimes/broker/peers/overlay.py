"""One process in an overlay of peers: the driver of its peers over live links.

`peers.Peer`, which the simulator drives too, decides which peers to ask for a place, which to feed, and what
to receive beyond its own demand. `PeerOverlay` drives it over live links, and by gossip finds other
processes. Time is an argument, in seconds; peers count it in cycles.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.network import Network
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.links.handshake import LinkSecret
from betimes.broker.links.link_base import HalfOpenLinks
from betimes.broker.links.packets import Arrival, LinkError, arrived_publication
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
from betimes.peers.messages import (
    Adopt,
    Connect,
    Got,
    Notice,
    PeerAccepted,
    PeerEffect,
    PeerRefresh,
    SendToPeer,
)
from betimes.peers.parents import PUBLISHER_DELAY
from betimes.peers.peer import Peer

log = logging.getLogger(__name__)

COMPLAINTS_MAX = 20  # the newest ones
JOIN_AGAIN_CYCLES = 16  # from one contact with a configured peer to the next: it rejoins a split overlay
COUNTED_CYCLES = 10.0  # over which the rate of local publications is measured
ONE_HOP = 1.0

Deliver = Callable[[Publication, float], None]
Lose = Callable[[Reason, int], None]


class PeerCall(NamedTuple):
    """An address to dial, for a link, or to make sure of an accepted one."""

    address: str
    confirms: PeerLink | None = None


Dial = Callable[["PeerOverlay", PeerCall], None]  # the overlay is called back with the result


class PeerTally:
    """Counts of events, since the start."""

    def __init__(self) -> None:
        self.published = 0
        self.wanted = 0
        self.in_time = 0
        self.delay_sum = self.delay_most = 0.0
        self.lost: Counter[Reason] = Counter()  # events, or copies of them, that were not sent


class PeerOverlay(Network):
    """One process of an overlay, as the network of its hub."""

    is_alone = False

    def __init__(
        self,
        plan: PeerPlan,
        *,
        life: int,
        secret: LinkSecret,
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
        self.secret = secret
        self.half_open = HalfOpenLinks()
        self.packet_bytes_max = packet_bytes_max
        self._deliver = deliver
        self._lose = lose
        self._chance = chance
        self._space = plan.agreement.space
        self._is_timed = plan.agreement.metric is Metric.TIME
        self._dial = dial
        self._opening: dict[str, PeerLink] = {}  # dialled, and not up yet
        self.mail = PeerOutbox(lambda address: dial(self, PeerCall(address)))
        self.view = PeerView(
            plan.address,
            chance,
            self.mail.delay_s_to if self._is_timed else lambda _: ONE_HOP,
            self.mail.source_of,
        )
        self.demand = PeerDemand(self._space, plan.wanted)
        self.subscriber = self._peer(now_s, plan.delay_max)
        self.publisher: Peer | None = None
        self.tally = PeerTally()
        self.complaints: deque[str] = deque(maxlen=COMPLAINTS_MAX)
        self._refused = refused  # is called when a configured peer refuses this one
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

    # --- local clients

    def subscribed(self, subscription: BrokerSubscription) -> None:
        """Add a client's subscription to the demand; the next cycle applies it."""
        self.demand.add(subscription)

    def unsubscribed(self, subscription: BrokerSubscription) -> None:
        """Remove a client's subscription from the demand."""
        self.demand.remove(subscription)

    def publish(self, publication: Publication, now_s: float) -> int:
        """Send a client's event to the children that want it; return how many they are."""
        if self.publisher is None:
            self._begin_to_publish((WHOLE,), now_s)
        assert self.publisher is not None, "it has begun"
        cells = event_cells(self._space, publication.attributes())
        dz = cells_dz(self._space, cells)
        if not any(covers(each, dz) for each in self.publisher.dz):
            self._lost(Reason.REFUSED)  # outside what this peer advertised
            return 0
        self.tally.published += 1
        self._counted += 1
        notice = Notice(self.publisher.name, publication.number, dz, cells, 0.0, content=publication)
        effects = self.publisher.publish(notice)
        self._perform(self.publisher, effects, now_s)
        return len(effects)

    # --- time

    def tick(self, now_s: float) -> None:
        """Do what is due: beats of the links; in each cycle gossip, the peers' own steps, spare links."""
        for link in list(self.mail.links.values()):
            link.tick(now_s)
        if now_s < self._cycle_at_s:
            return
        self._cycle_at_s = max(self._cycle_at_s + self.plan.cycle_s * (0.9 + 0.2 * self._chance()), now_s)
        self._cycles += 1
        for name in self.view.forget_old(self.mail.links, now_s):
            self._gone(name, now_s)
        self._count(now_s)
        self._gossip(now_s)
        for name in self.view.to_contact(self.mail.links, now_s):
            self._ask_for_cards(address_of(name), now_s)
        if self.demand.has_changed:
            self.demand.has_changed = False
            effects = self.subscriber.want(self.demand.boxes(), self._cycle(now_s))
            self._perform(self.subscriber, effects, now_s)
        for peer in self._peers():
            self._perform(peer, peer.act(self._cycle(now_s)), now_s)
        for link in self.mail.spare(self._needed(), now_s):
            link.end_spare(now_s)

    def close(self, now_s: float) -> None:
        """Disconnect all links: this process stops."""
        for link in list(self.mail.links.values()):
            link.connection.hang_up(Refusal(DisconnectCode.SERVER_SHUTTING_DOWN.value), now_s)

    def _cycle(self, now_s: float) -> float:
        return now_s / self.plan.cycle_s

    def _count(self, now_s: float) -> None:
        """Measure the rate of local publications, and put it on the publisher's card."""
        cycles = (now_s - self._counted_since_s) / self.plan.cycle_s
        if self.publisher is not None and cycles >= COUNTED_CYCLES:
            self.publisher.published_rate = self._counted / cycles if self._counted else None
            self._counted, self._counted_since_s = 0, now_s
            self.subscriber.hear_of(self.publisher.card())

    def _gossip(self, now_s: float) -> None:
        """Send cards to a random known peer, and ask for its cards."""
        partner = self.view.partner()
        if self.plan.join and (partner is None or self._cycles % JOIN_AGAIN_CYCLES == 0):
            partner = self.plan.join[int(self._chance() * len(self.plan.join))]
        if partner is not None and partner != self.address:
            self._ask_for_cards(partner, now_s)

    def _ask_for_cards(self, address: str, now_s: float) -> None:
        text = gossip_text(self._cards_to_send(), asks=True)
        self.mail.post(address, lambda link: link.say(GOSSIP_TOPIC, text, now_s))

    def _cards_to_send(self) -> list[Descriptor]:
        """Return the cards for gossip: of this process's peers, and of some others."""
        self._issued += 1
        own = [Descriptor(peer.card(), self._issued) for peer in self._peers() if peer.dz]
        return [*own, *self.view.sample()]

    def _needed(self) -> set[str]:
        """Return the addresses to which links are needed: those of parents and children."""
        names = {name for peer in self._peers() for name in (*peer.lines.parents(), *peer.children.by_name)}
        return set(map(address_of, names))

    def _peers(self) -> list[Peer]:
        return [self.subscriber] if self.publisher is None else [self.publisher, self.subscriber]

    # --- input from links

    def answer(self, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Accept the connection of another peer as a link, or refuse it."""
        PeerLink(self, connection, "", now_s).answer(packet)

    def open_link(self, call: PeerCall, connection: Connection, now_s: float) -> None:
        """Begin the handshake on a connection to the address of a call."""
        link = PeerLink(self, connection, call.address, now_s, confirms=call.confirms)
        if call.confirms is None:
            self._opening[call.address] = link
        link.dial()

    def has_opened(self, address: str, opening: str) -> bool:
        """Tell whether this process is about to open that link to the process at an address."""
        link = self._opening.get(address)
        return link is not None and not link.connection.closing and link.opening == opening

    def _not_opening(self, link: PeerLink) -> None:
        if self._opening.get(link.neighbour) is link:
            del self._opening[link.neighbour]

    def confirm(self, link: PeerLink, _now_s: float) -> None:
        """Dial the address that a neighbour states: no place is given, and no word believed, before."""
        self._dial(self, PeerCall(link.neighbour, link))

    def link_up(self, link: PeerLink, now_s: float) -> None:
        """Use a link, and send the messages that waited for it."""
        link.is_up = True
        self._not_opening(link)
        outlived = self.mail.up(link, self.address)
        if outlived is not None:
            self._gone_with(link.neighbour, now_s)
            outlived.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
        log.info("link with %s is up", link.neighbour)
        for post in self.mail.take_waiting(link.neighbour):
            post(link)

    def link_down(self, link: PeerLink, now_s: float) -> None:
        """Note that a link has ended; unless it was spare, the peer behind it is taken to be gone."""
        was_up, link.is_up = link.is_up, False
        self._not_opening(link)
        self.mail.keep_delay(link)
        if not was_up:
            self.dial_failed(PeerCall(link.neighbour), now_s)
        elif self.mail.down(link):
            log.info("link with %s is down", link.neighbour)
            if not link.is_spare:
                self._gone_with(link.neighbour, now_s)

    def dial_failed(self, call: PeerCall, now_s: float) -> None:
        """Take a peer that cannot be reached to be gone."""
        address = call.address
        if call.confirms is not None:
            call.confirms.unconfirmed("it cannot be dialled")
            return
        if address in self.mail.links:
            return  # the peer dialled this one meanwhile
        self.mail.take_waiting(address)
        self._gone_with(address, now_s)

    def refused(self, address: str, text: str) -> None:
        """Note that a peer refuses this one."""
        self.complain(address, f"it refuses: {text}")
        if address in self.plan.join and not self.mail.links:
            self._refused(f"{address}: {text}")

    def complain(self, neighbour: str, problem: str, *, is_logged: bool = False) -> None:
        """Remember a problem with a peer for the status, and log it, unless it is logged already."""
        if not is_logged:
            log.warning("peer %s: %s", neighbour, problem)
        self.complaints.append(f"{neighbour}: {problem}")

    def hear(self, link: PeerLink, payload: bytes, now_s: float) -> None:
        """Pass a letter from a neighbour to the local peer that it is for."""
        letter = read_letter(payload, self._space.length)
        message = letter.message
        own = (
            message.card.name if isinstance(message, Connect | PeerAccepted | PeerRefresh) else letter.sender
        )
        if address_of(letter.sender) != link.neighbour or own != letter.sender:
            raise LinkError(f"{link.neighbour} speaks for {own}")
        peer = self._called(letter.to)
        if peer is None:
            return
        took = link.transit.delay_s if self._is_timed else ONE_HOP
        if isinstance(message, Adopt):
            self._hear_adopt(peer, letter.sender, message, took, now_s)
        else:
            effects = peer.receive(letter.sender, message, self._cycle(now_s), took=took)
            self._perform(peer, effects, now_s)

    def _hear_adopt(self, peer: Peer, sender: str, message: Adopt, took: float, now_s: float) -> None:
        """Give a child a place that a parent dismissed for this peer, once there is a link with the child."""
        if sender not in peer.lines.parents():
            return

        def adopt() -> None:
            effects = peer.receive(sender, message, self._cycle(now_s), took=took)
            self._perform(peer, effects, now_s)

        child = address_of(message.card.name)
        if child == self.address:
            adopt()
        else:
            self.mail.post(child, lambda _: adopt())

    def hear_gossip(self, link: PeerLink, payload: bytes, now_s: float) -> None:
        """Add cards to the view, the neighbour's own and its hearsay; answer with cards if it asks."""
        descriptors, asks = read_gossip(payload, self._space.length)
        for descriptor in descriptors:
            is_news = self.view.hear_of(descriptor, now_s, told_by=link.neighbour)
            if is_news and descriptor.card.publishes:
                self.subscriber.hear_of(descriptor.card)
        if asks:
            link.say(GOSSIP_TOPIC, gossip_text(self._cards_to_send(), asks=False), now_s)

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
        """Pass an event from a neighbour to the local peer that it is for."""
        if address_of(sender) != link.neighbour or len(arrival.destinations) != 1:
            raise LinkError(f"{link.neighbour} sends an event for {sender or 'no peer'}")
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
        took = took_s if self._is_timed else ONE_HOP
        self._perform(peer, peer.receive(sender, notice, self._cycle(now_s), took=took), now_s)

    # --- inside

    def _called(self, name: str) -> Peer | None:
        return next((peer for peer in self._peers() if peer.name == name), None)

    def _gone_with(self, address: str, now_s: float) -> None:
        for name in (address, address + PUBLISHES):
            self._gone(name, now_s)

    def _gone(self, name: str, now_s: float) -> None:
        self.view.forget(name, now_s)
        for peer in self._peers():
            peer.lost(name, self._cycle(now_s))

    def _perform(self, peer: Peer, effects: Iterable[PeerEffect], now_s: float) -> None:
        """Perform a peer's effects, and those of the other local peer that follow from them."""
        waiting = deque((peer, effect) for effect in effects)
        while waiting:
            speaker, effect = waiting.popleft()
            if isinstance(effect, Got):
                self._got(effect, now_s)
            elif address_of(effect.to) != self.address:
                self._send(speaker.name, effect, now_s)
            elif (listener := self._called(effect.to)) is not None:
                answers = listener.receive(speaker.name, effect.message, self._cycle(now_s), took=0.0)
                waiting.extend((listener, each) for each in answers)

    def _send(self, sender: str, tell: SendToPeer, now_s: float) -> None:
        to, message = tell
        if not isinstance(message, Notice):
            text = letter_text(Letter(sender, to, message))
            self.mail.post(address_of(to), lambda link: link.say(LETTER_TOPIC, text, now_s))
            return
        publication = message.content
        assert isinstance(publication, Publication), "every event here is a publication"
        link = self.mail.links.get(address_of(to))
        hops = 0 if self._is_timed else int(message.delay)
        if link is None or not link.send_event(publication, sender=sender, to=to, hops=hops, now_s=now_s):
            self._lost(Reason.QUEUE_FULL if link is not None else Reason.NO_ROUTE)

    def _lost(self, reason: Reason) -> None:
        self.tally.lost[reason] += 1
        self._lose(reason, 1)

    def _got(self, got: Got, now_s: float) -> None:
        """Deliver an event to local clients; they have the events that were published here already."""
        publication = got.notice.content
        assert isinstance(publication, Publication), "every event here is a publication"
        if publication.origin == self.address or not self.demand.want(publication.attributes()):
            return
        tally = self.tally
        tally.wanted += 1
        tally.in_time += got.in_time
        tally.delay_sum += got.delay
        tally.delay_most = max(tally.delay_most, got.delay)
        self._deliver(publication, now_s)
