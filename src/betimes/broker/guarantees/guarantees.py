"""Bandwidth and latency guarantees of this broker's clients (004, section 2; docs/reservations.md).

A SUBSCRIBE with `bandwidth` or `latency` waits for its SUBACK until every topic in it is reserved along the
whole route or refused. What is lost later is published on `$betimes/reservation/<client>`, and asked for
again until it is there. The reservations themselves are made by `broker/links/reservations.py`.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from enum import Enum
from urllib.parse import quote

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Decision, Extension, GoOn
from betimes.broker.core.hub import Hub
from betimes.broker.core.subscribe_request import SubscribeRequest
from betimes.broker.delivery.accounts import Account
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.guarantees.advertisements import OF_BROKER, Advertised
from betimes.broker.links.reservations import LinkReservations, ReservationNews
from betimes.language.quantities import show_duration, show_rate
from betimes.model.bounded_map import BoundedMap
from betimes.model.errors import TextError
from betimes.model.guarantees import Guarantee
from betimes.model.user_properties import BANDWIDTH, DEFINITE, LATENCY, RESERVATION_TOPIC
from betimes.mqtt.reason_codes import ConnectCode, SubscribeCode
from betimes.reservations.outcomes import Accepted, Interrupted, Refused, enough_s, why
from betimes.reservations.outcomes import RefusalReason as Reason
from betimes.reservations.requests import Fitting, ReservationRequest
from betimes.reservations.signals import Manner

TOPIC_LENGTH_MAX = 500
WANTED_MAX = 10_000  # of all clients of a broker
WAIT_S_MAX = 8.0  # for a SUBACK: clients do not wait for ever
AGAIN_S_MIN, AGAIN_S_MAX = 2.0, 30.0  # after which what is lost is asked for again, ever later
WILDCARDS = frozenset("#+")
NOT_SUPPORTED = SubscribeCode.IMPLEMENTATION_SPECIFIC_ERROR


class State(Enum):
    """Where a guarantee stands; clients see the values."""

    ASKED = "asked"  # its client waits for the SUBACK
    TRYING = "trying"  # refused; the broker finds out what would fit, and its client still waits
    RENEWING = "renewing"  # asked for again, or for more: no client waits for a SUBACK
    HELD = "accepted"
    INTERRUPTED = "interrupted"  # a link on the route is lost; the network looks for another route
    DENIED = "refused"  # lost later, and asked for again, ever later
    LAPSED = "lapsed"  # given back because no message used it; asked for again when one comes
    ENDED = "ended"


class Signal(Enum):
    """What happens to a guarantee."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    NOTHING_FITS = "all alternatives tried"
    TIMED_OUT = "no answer in time"
    RELEASED = "released"
    UNUSED = "unused for too long"
    USED = "a message came"


_AFTER_SUBACK = (State.RENEWING, State.HELD, State.INTERRUPTED, State.DENIED)

# Every transition stands here and nowhere else; a pair that is not in the table is a bug. A test compares the
# diagram in docs/reservations.md with the table.
TRANSITIONS: dict[tuple[State, Signal], State] = {
    (State.ASKED, Signal.ACCEPTED): State.HELD,
    (State.ASKED, Signal.REFUSED): State.TRYING,
    (State.ASKED, Signal.TIMED_OUT): State.ENDED,
    (State.ASKED, Signal.RELEASED): State.ENDED,
    (State.TRYING, Signal.NOTHING_FITS): State.ENDED,
    (State.TRYING, Signal.TIMED_OUT): State.ENDED,
    (State.TRYING, Signal.RELEASED): State.ENDED,
    **{(state, Signal.ACCEPTED): State.HELD for state in _AFTER_SUBACK},
    **{(state, Signal.INTERRUPTED): State.INTERRUPTED for state in _AFTER_SUBACK},
    **{(state, Signal.REFUSED): State.DENIED for state in _AFTER_SUBACK},
    **{(state, Signal.RELEASED): State.ENDED for state in _AFTER_SUBACK},
    (State.HELD, Signal.UNUSED): State.LAPSED,
    (State.LAPSED, Signal.USED): State.RENEWING,
    (State.LAPSED, Signal.RELEASED): State.ENDED,
}


@dataclass(slots=True)
class PendingSubscribe:
    """A SUBSCRIBE that waits for the answers to its topics."""

    connection: Connection
    go_on: GoOn
    left: set[str]  # names of reservations that are still to be answered
    since_s: float
    decisions: dict[str, Decision] = field(default_factory=dict)


@dataclass(slots=True)
class GuaranteeRequest:
    """One topic of one client, from the request to the release."""

    reservation: ReservationRequest
    written: str  # the topic filter
    pending: PendingSubscribe | None  # None: its client has the SUBACK
    session: Session
    state: State
    reported: object = None  # state, reason and amounts, as its client was last told
    held: tuple[Accepted, ...] = ()  # of each publisher
    fitting: Fitting | None = None  # the alternatives of a refusal that are being tried
    again_at_s: float = math.inf
    again_after_s: float = AGAIN_S_MIN
    is_kept: bool = False  # there is a subscription for it
    more: str = ""  # the name of what is asked for in its place, because events take more by now
    instead_of: str = ""  # likewise, the name of what it is to take the place of

    @property
    def name(self) -> str:
        """Return the name of its reservation."""
        return self.reservation.subscription

    @property
    def latency_s(self) -> float:
        """Return what the slowest of the reserved routes takes."""
        return max([each.latency_s for each in self.held], default=0.0)

    @property
    def bytes_per_s(self) -> int:
        """Return what is reserved of all publishers together."""
        return sum([each.bytes_per_s for each in self.held])

    def move(self, signal: Signal) -> None:
        """Go to the state that follows a signal; a pair that is not in the table is a bug."""
        self.state = TRANSITIONS[self.state, signal]


class Guarantees(Extension):
    """The guarantees of all clients of one broker."""

    def __init__(self, hub: Hub, reserved: LinkReservations) -> None:
        self._hub = hub
        self._reserved = reserved
        self._wanted: dict[str, GuaranteeRequest] = {}  # by the name of the reservation
        self._held: dict[tuple[str, str], str] = {}  # by client and topic filter: that name
        self._names: dict[str, set[str]] = {}  # by client: of all that it has or asks for
        self._silent: BoundedMap[str, float] = BoundedMap(WANTED_MAX)  # when a topic's reservation lapsed
        self._advertised = Advertised(reserved)
        self._given = 0
        self.accepted = 0
        self.refused = 0
        reserved.serve(self)

    # --- what clients do

    def decide(self, connection: Connection, request: SubscribeRequest, go_on: GoOn, now_s: float) -> bool:
        """Ask for all that a SUBSCRIBE wants; `go_on` is called with what came of it, perhaps at once."""
        guarantee, session = request.guarantee, connection.session
        assert guarantee is not None, "the SUBSCRIBE asks for a guarantee"
        assert session is not None, "only a client subscribes"
        pending = PendingSubscribe(connection, go_on, set(), now_s)
        requests: list[ReservationRequest] = []
        for pattern in dict.fromkeys(request.filters):
            if session.rights is not None and not session.rights.may_subscribe(pattern):
                continue  # the client may not read it, and learns no more than that
            if WILDCARDS.intersection(pattern) or pattern.startswith("$"):
                text = f"{pattern}: {_why_not(pattern)}"
                pending.decisions[pattern] = Decision(is_admitted=False, text=text, code=NOT_SUPPORTED)
            elif len(pattern) > TOPIC_LENGTH_MAX:
                text = f"a guarantee is for a topic of at most {TOPIC_LENGTH_MAX} letters"
                pending.decisions[pattern] = Decision(is_admitted=False, text=text, code=NOT_SUPPORTED)
            elif len(self._wanted) >= WANTED_MAX:
                pending.decisions[pattern] = Decision(is_admitted=False, text=f"{pattern}: too many ask here")
            elif problem := self._beyond_account(session.account, pattern, guarantee):
                self.refused += 1
                pending.decisions[pattern] = Decision(is_admitted=False, text=f"{pattern}: {problem}")
            else:
                reservation = self._want(pattern, guarantee, pending, session)
                pending.left.add(reservation.subscription)
                requests.append(reservation)
        for reservation in requests:
            if reservation.subscription in pending.left:
                self._reserved.subscribe(reservation, now_s)
        if not requests:
            go_on(pending.decisions, now_s)
        return True

    def subscribed(self, written: str, subscription: BrokerSubscription, _now_s: float) -> None:
        """Note that a subscription was taken in with the reservation that was made for it."""
        wanted = self._wanted.get(subscription.reservation)
        if wanted is not None:
            wanted.is_kept = True
            self._held[subscription.session.client_id, written] = subscription.reservation

    def unsubscribed(self, _written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Give back what a subscription has."""
        name = self._held.pop((subscription.session.client_id, subscription.written), None)
        if name is not None:
            self._forget(name, now_s)

    def client_left(self, session: Session, _will: mqtt5.Will | None, now_s: float) -> None:
        """Give back what a client has that is gone; its subscriptions may outlive that."""
        self._advertised.left(session, now_s)
        for wanted in [self._wanted[name] for name in self._names.get(session.client_id, ())]:
            self._held.pop((session.client_id, wanted.written), None)
            self._forget(wanted.name, now_s)

    def connecting(
        self,
        connection: Connection,
        packet: mqtt5.ConnectPacket,
        client_id: str,
        user: str | None,
        _now_s: float,
    ) -> bool:
        """Refuse a client that advertises what it may not."""
        try:
            rights = self._hub.access_control.rights(user, client_id)
            self._advertised.check(rights, packet.user_properties)
        except TextError as error:
            connection.refuse(ConnectCode.IMPLEMENTATION_SPECIFIC_ERROR, error.in_one_line)
            return False
        return True

    def client_came(self, session: Session, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Take in what a client advertises; ask again for what it had, and tell it what comes of that."""
        self._advertised.came(session, packet.user_properties, now_s)
        for written, subscription in session.subscriptions.items():
            guarantee = None if subscription.options is None else subscription.options.qos.guarantee
            if guarantee is not None and (session.client_id, written) not in self._held:
                reservation = self._want(written, guarantee, None, session)
                self._wanted[reservation.subscription].is_kept = True
                self._held[session.client_id, written] = reservation.subscription
                self._reserved.subscribe(reservation, now_s)

    def tick(self, now_s: float) -> None:
        """Ask again for what is lost; answer every SUBSCRIBE in bounded time."""
        for name, wanted in list(self._wanted.items()):
            if wanted.pending is not None and now_s - wanted.pending.since_s > WAIT_S_MAX:
                late = Refused(
                    name, None, Reason.NO_ANSWER, is_definite=False, room_bytes_per_s=0, latency_s=math.inf
                )
                self._refuse(wanted, late, Signal.TIMED_OUT, now_s)
            elif now_s >= wanted.again_at_s:
                wanted.again_at_s = math.inf
                self._reserved.ask_again(wanted.reservation, now_s)
            elif wanted.is_kept and self._reserved.node.requests.is_outgrown(name) != bool(wanted.more):
                self._follow(wanted, now_s)
            elif wanted.is_kept and wanted.session.account.grants.unused_s_max < math.inf:
                self._follow_use(wanted, now_s)
        for topic, lapsed_at_s in list(self._silent.items()):
            if self._reserved.event_at_s.get(topic, lapsed_at_s) > lapsed_at_s:
                self._silent.forget(topic)
        self._reserved.watch([*self._silent, *[each.written for each in self._wanted.values()]], now_s)

    def _follow_use(self, wanted: GuaranteeRequest, now_s: float) -> None:
        """Give back what no message has used for too long; ask for it again when a message has come."""
        quiet_s = now_s - self._reserved.event_at_s.get(wanted.written, now_s)
        if quiet_s <= wanted.session.account.grants.unused_s_max:
            if wanted.state is State.LAPSED:
                wanted.move(Signal.USED)
                self._reserved.subscribe(wanted.reservation, now_s)
        elif wanted.state is State.HELD:
            self._silent.note(wanted.written, now_s)
            self._forget(wanted.more, now_s)
            self._reserved.unsubscribe(wanted.name, now_s)
            wanted.held = ()
            wanted.move(Signal.UNUSED)
            wanted.reported = (wanted.state, None, None)
            why_lapsed = f"no message in {show_duration(quiet_s)}; it is reserved again when one comes"
            self._tell(wanted, {"why": why_lapsed}, now_s)

    def _beyond_account(self, account: Account, topic: str, guarantee: Guarantee) -> str:
        """Return why a guarantee is more than its client's account grants; empty if it is not."""
        grants = account.grants
        if grants.unused_s_max < math.inf and topic in self._silent:
            return "nothing was published for too long; it can be reserved again when a message has come"
        asked_kb_per_s = guarantee.bandwidth_kb_per_s or 0.0
        left = grants.reserved_kb_per_s_max - self._reserved_by(account)
        if grants.reserved_kb_per_s_max > 0.0 and asked_kb_per_s <= left:
            return ""
        most = f"may reserve {show_rate(grants.reserved_kb_per_s_max)} at most"
        return f"{account.spoken} {most if grants.reserved_kb_per_s_max else 'may reserve nothing'}"

    def _reserved_by(self, account: Account) -> float:
        """Return the bandwidth that an account's clients hold or ask for, in KB/s. O(guarantees)."""
        return (
            sum(
                [
                    max(wanted.bytes_per_s, (wanted.reservation.bytes_per_s or 0) * (not wanted.instead_of))
                    for wanted in self._wanted.values()
                    if wanted.session.account is account and wanted.state is not State.LAPSED
                ]
            )
            / 1000.0
        )

    def _follow(self, wanted: GuaranteeRequest, now_s: float) -> None:
        """Ask for more in place of what was reserved, or, where that is enough again, no longer."""
        if wanted.more:
            self._forget(wanted.more, now_s)
            for news in self._reserved.node.requests.held(wanted.name)[:1]:
                wanted.reported = None  # its client may have heard that more was refused
                self._changed(wanted, news, now_s)
        elif len(self._wanted) < WANTED_MAX:
            reservation = self._want(
                wanted.written,
                Guarantee(latency_s_max=wanted.reservation.latency_s_max),
                None,
                wanted.session,
            )
            self._wanted[reservation.subscription].instead_of = wanted.name
            wanted.more = reservation.subscription
            self._reserved.subscribe(reservation, now_s)

    def _take_its_place(self, wanted: GuaranteeRequest, now_s: float) -> None:
        """Let a client keep what was asked for in place of what it had."""
        before, wanted.instead_of, wanted.is_kept = wanted.instead_of, "", True
        self._held[wanted.session.client_id, wanted.written] = wanted.name
        self._wanted[before].more = ""
        self._forget(before, now_s)

    def ask_for_lost(self, now_s: float) -> None:
        """Ask at once for what is lost: ways have changed."""
        for wanted in list(self._wanted.values()):
            if wanted.again_at_s < math.inf:
                wanted.again_at_s, wanted.again_after_s = math.inf, AGAIN_S_MIN
                self._reserved.ask_again(wanted.reservation, now_s)

    # --- what the network answers

    def hear(self, news: ReservationNews, now_s: float) -> None:
        """Take in what became of a reservation."""
        name, _, is_trial = news.subscription.partition("?")
        wanted = self._wanted.get(name)
        if wanted is None:
            if not isinstance(news, Interrupted):
                self._reserved.unsubscribe(news.subscription, now_s)
        elif is_trial:
            self._tried(wanted, news, now_s)
        elif wanted.pending is None:
            self._changed(wanted, news, now_s)
        elif isinstance(news, Accepted):
            if self._reserved.node.requests.is_settled(name):  # of all publishers
                wanted.held = tuple(self._reserved.node.requests.held(name))
                account = wanted.session.account
                if self._reserved_by(account) <= account.grants.reserved_kb_per_s_max:
                    self._accept(wanted, now_s)
                else:  # it asked for what the publishers advertise, and that is more than it may have
                    self.refused += 1
                    wanted.move(Signal.RELEASED)
                    most = show_rate(account.grants.reserved_kb_per_s_max)
                    asked = show_rate(wanted.bytes_per_s / 1000.0)
                    text = f"{wanted.written}: {asked}: {account.spoken} may reserve {most} at most"
                    self._answer(wanted, Decision(is_admitted=False, text=text), now_s)
        elif isinstance(news, Refused):
            self._reserved.unsubscribe(name, now_s)
            wanted.move(Signal.REFUSED)
            wanted.fitting = Fitting(wanted.reservation, news)
            self._look_into(wanted, wanted.fitting, now_s)

    def _look_into(self, wanted: GuaranteeRequest, fitting: Fitting, now_s: float) -> None:
        """Find out whether what seems to fit does: more than one link may be short of room."""
        trial = fitting.next_trial()
        if trial is None:
            wanted.fitting = None
            self._refuse(wanted, fitting.refused, Signal.NOTHING_FITS, now_s)
        else:
            self._reserved.subscribe(trial, now_s)

    def _tried(self, wanted: GuaranteeRequest, news: ReservationNews, now_s: float) -> None:
        fitting, requests = wanted.fitting, self._reserved.node.requests
        if fitting is None:
            self._reserved.unsubscribe(news.subscription, now_s)
        elif isinstance(news, Accepted):
            if requests.is_settled(news.subscription):  # of all publishers
                fitting.accepted(max([each.latency_s for each in requests.held(news.subscription)]))
                self._reserved.unsubscribe(news.subscription, now_s)
                self._look_into(wanted, fitting, now_s)
        elif isinstance(news, Refused):
            self._reserved.unsubscribe(news.subscription, now_s)
            fitting.denied(news)
            self._look_into(wanted, fitting, now_s)

    def _accept(self, wanted: GuaranteeRequest, now_s: float) -> None:
        self.accepted += 1
        bandwidth, latency = show_rate(wanted.bytes_per_s / 1000.0), show_duration(round(wanted.latency_s, 4))
        of_all = f", of {len(wanted.held)} publishers together" if len(wanted.held) > 1 else ""
        text = f"{wanted.written}: {bandwidth} reserved{of_all}, {latency} away"
        told = ((BANDWIDTH, bandwidth), (LATENCY, latency))
        wanted.move(Signal.ACCEPTED)
        wanted.reported = (wanted.state, None, (wanted.latency_s, wanted.bytes_per_s))
        decision = Decision(is_admitted=True, text=text, reservation=wanted.name, properties=told)
        self._answer(wanted, decision, now_s)

    def _refuse(self, wanted: GuaranteeRequest, refused: Refused, signal: Signal, now_s: float) -> None:
        self.refused += 1
        wanted.move(signal)
        told = [(DEFINITE, "true" if refused.is_definite else "false")]
        if refused.reason == Reason.NO_BANDWIDTH:
            told.append((BANDWIDTH, show_rate(refused.fits_bytes_per_s / 1000.0)))
        if refused.reason == Reason.TOO_SLOW:
            can_be_had_s = refused.latency_s if refused.had_s is None else refused.had_s
            if math.isfinite(can_be_had_s):
                told.append((LATENCY, show_duration(enough_s(can_be_had_s))))
        hint = "" if refused.is_definite else "; this is not definite, ask again later"
        text = f"{wanted.written}: refused: {why(refused)}{hint}"
        self._answer(wanted, Decision(is_admitted=False, text=text, properties=tuple(told)), now_s)

    def _answer(self, wanted: GuaranteeRequest, decision: Decision, now_s: float) -> None:
        """Note the answer to one topic; with the last of them the client gets its SUBACK."""
        pending, wanted.pending = wanted.pending, None
        assert pending is not None, "a SUBSCRIBE is answered once"
        pending.left.discard(wanted.name)
        pending.decisions[wanted.written] = decision
        if not decision.is_admitted:
            self._forget(wanted.name, now_s)
        if pending.left:
            return
        connection = pending.connection
        if not connection.closing and connection.session is wanted.session:
            pending.go_on(pending.decisions, now_s)
        for each in pending.decisions.values():  # reserved, and refused for another reason
            unused = self._wanted.get(each.reservation)
            if unused is not None and not unused.is_kept:
                self._forget(each.reservation, now_s)

    def _changed(self, wanted: GuaranteeRequest, news: ReservationNews, now_s: float) -> None:
        """Tell a client what has become of its reservation, where that is news to it."""
        name, requests = wanted.name, self._reserved.node.requests
        if wanted.state is State.LAPSED:  # the news crossed with our release
            self._reserved.unsubscribe(name, now_s)
            return
        wanted.held = tuple(requests.held(name))
        amounts = reason = None
        if isinstance(news, Interrupted):
            wanted.move(Signal.INTERRUPTED)
            self._forget(wanted.more, now_s)  # what is asked for anew is what events take now
        elif isinstance(news, Refused):
            wanted.move(Signal.REFUSED)
            reason = news.reason
            wanted.again_at_s = now_s + wanted.again_after_s
            wanted.again_after_s = min(2.0 * wanted.again_after_s, AGAIN_S_MAX)
        else:
            wanted.again_after_s = AGAIN_S_MIN
            if not requests.is_whole(name):
                return  # the route to another publisher is still asked for
            wanted.move(Signal.ACCEPTED)
            amounts = (wanted.latency_s, wanted.bytes_per_s)
            if wanted.instead_of:
                account = wanted.session.account
                before = self._wanted[wanted.instead_of].bytes_per_s / 1000.0
                if self._reserved_by(account) - before > account.grants.reserved_kb_per_s_max:
                    self._forget(name, now_s)
                    return
                self._take_its_place(wanted, now_s)
        if (wanted.state, reason, amounts) == wanted.reported:
            return
        wanted.reported = (wanted.state, reason, amounts)
        said: dict[str, object] = {}
        if isinstance(news, Accepted):
            said |= {"bytes_per_s": wanted.bytes_per_s, "latency_s": round(wanted.latency_s, 6)}
        elif isinstance(news, Refused):
            said |= {
                "why": f"{why(news)}; the broker goes on asking",
                "definite": news.is_definite,
                "fits_bytes_per_s": news.fits_bytes_per_s,
            }
        self._tell(wanted, said, now_s)

    def _tell(self, wanted: GuaranteeRequest, details: dict[str, object], now_s: float) -> None:
        """Publish to a client what has become of its guarantee."""
        said = {"topic": wanted.written, "state": wanted.state.value} | details
        topic = f"{RESERVATION_TOPIC}/{quote(wanted.session.client_id, safe='')}"
        packet = mqtt5.PublishPacket(topic, json.dumps(said).encode(), content_type="application/json")
        message = Publication(packet, topic, born_s=now_s, origin=self._hub.name)
        wanted.session.offer(Delivery(message), now_s)

    # --- inside

    def _want(
        self, topic: str, guarantee: Guarantee, pending: PendingSubscribe | None, session: Session
    ) -> ReservationRequest:
        self._given += 1
        kb_per_s = guarantee.bandwidth_kb_per_s
        name = str(self._given)
        reservation = ReservationRequest(
            subscription=name,
            event_type=topic,
            bytes_per_s=None if kb_per_s is None else max(round(kb_per_s * 1000.0), 1),
            latency_s_max=guarantee.latency_s_max,
            manner=Manner.COORDINATES,
            home=self._hub.name,
        )
        self._wanted[name] = GuaranteeRequest(
            reservation, topic, pending, session, State.RENEWING if pending is None else State.ASKED
        )
        self._names.setdefault(session.client_id, set()).add(name)
        return reservation

    def _forget(self, name: str, now_s: float) -> None:
        wanted = self._wanted.pop(name, None)
        if wanted is None:
            return
        if wanted.instead_of in self._wanted:
            self._wanted[wanted.instead_of].more = ""
        self._forget(wanted.more, now_s)
        names = self._names[wanted.session.client_id]
        names.discard(name)
        if not names:
            del self._names[wanted.session.client_id]
        self._reserved.unsubscribe(name, now_s)


def _why_not(pattern: str) -> str:
    """Return why there is no guarantee for a topic filter."""
    if pattern.startswith("$") and not pattern.startswith("$share/"):
        return f"{OF_BROKER}, and nothing is reserved for them"
    problem = "a guarantee is for one topic, without wildcards and not shared"
    return f"{problem} (hint: name the topic that its publisher advertises)"
