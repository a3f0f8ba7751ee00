"""Who of a scenario's subscribers is guaranteed what it asks for, and along which links (004)?

The type of an event is its publisher, as far as that states a `qos_profile`. The nodes are those of live
brokers, over the scenario's links, and what they say takes no time: everybody asks before the first event is
published, one after the other in the order of the file, and what is moved for somebody to another way is
there before the next one asks. Who is refused takes part without a guarantee.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from betimes.model.events import Value
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Link, Publisher, Scenario
from betimes.reservations.alternatives import Fitting
from betimes.reservations.enforcement import Pinned, Shares, shares_and_pins
from betimes.reservations.node import PROMISED_SHARE_MAX, ReservingNode, ReservingSettings
from betimes.reservations.outcomes import Accepted, RefusalReason, Refused, why
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.requests import Effect, ReservationRequest
from betimes.reservations.signals import Manner, SendSignal
from betimes.routing.routing_table import routing_tables

NEVER = ReservingSettings(refresh_every_s=math.inf, lapse_after_s=math.inf)  # nobody goes


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedSubscriber:
    """What came of one subscriber's wish for a guarantee."""

    subscriber: str
    is_accepted: bool
    bytes_per_s: int  # of all publishers together; of what was refused, what would have fitted
    latency_s: float  # of the longest way; of what is too slow, of the fastest
    reason: str = ""
    is_definite: bool = True
    is_shared: bool = False  # what would have fitted is what others have
    why: str = ""  # it was refused, in words


class Reserving:
    """The reserving nodes of a scenario, with some of its links."""

    def __init__(self, scenario: Scenario, names: Collection[str], links: Iterable[Link]) -> None:
        up = {(link.source, link.target): link for link in links}
        self._capacity = {
            ends: int(1000.0 * PROMISED_SHARE_MAX / link.s_per_kb_mean) if link.s_per_kb_mean else 10**12
            for ends, link in up.items()
        }
        back = [
            replace(link, source=target, target=source)  # by which nothing is promised, but what is said goes
            for (source, target), link in up.items()
            if (target, source) not in up
        ]
        all_links = [*up.values(), *back]
        sizes_kb = [each.size_kb.mean for each in scenario.publishers]
        tables = routing_tables(tuple(names), all_links, tuple(names))
        self._ways = {
            name: MeshWays(table, up.values(), size_kb=2.0 * max(sizes_kb, default=1.0))
            for name, table in tables.items()
        }
        self._entries = {each.name: _entry(each) for each in scenario.publishers}
        self._nodes = {
            name: ReservingNode(
                ways,
                NEVER,
                lambda neighbour, own=name: self._capacity.get((own, neighbour), 0),  # type: ignore[misc]
                lambda neighbour, own=name: self._capacity.get((neighbour, own), 0),  # type: ignore[misc]
            )
            for name, ways in self._ways.items()
        }
        self._now_s = 0.0
        self._news: list[Effect] = []
        self._had: dict[str, list[ReservationRequest]] = {}  # by subscriber, all that it was given
        self._latency_s: dict[str, float] = {}  # by wish, as it was told last
        for publisher in scenario.publishers:
            if publisher.profile is not None:
                bytes_per_s = round(1000.0 * publisher.profile.bandwidth_kb_per_s)
                node = self._entries[publisher.name]
                self._perform(node, self._nodes[node].advertise(publisher.name, bytes_per_s, self._now_s))

    def ask(self, subscription: Subscription, publishers: Collection[str]) -> GuaranteedSubscriber:
        """Reserve what a subscriber asks for, of all these publishers, or nothing."""
        guarantee = subscription.qos.guarantee
        assert guarantee is not None, "who asks for nothing is guaranteed nothing"
        kb_per_s, home = guarantee.bandwidth_kb_per_s, subscription.home
        wish = ReservationRequest(
            subscription=subscription.id,
            event_type="",  # each publisher's in its place
            bytes_per_s=None if kb_per_s is None else max(round(1000.0 * kb_per_s), 1),
            latency_s_max=guarantee.latency_s_max,
            manner=Manner.COORDINATES,
            home=home,
            is_trial=True,
        )
        wishes = _for_each(wish, publishers)
        if not wishes:
            return self._refused(subscription, _unknown(subscription.id, RefusalReason.NOBODY_PUBLISHES))
        answer = self._try_all(home, wishes)
        if isinstance(answer, Refused):
            return self._refused(subscription, self._what_fits(wish, publishers, answer))
        for each in wishes:
            self._perform(home, self._nodes[home].confirm(each.subscription, self._now_s))
        self._settle(home)
        self._had[subscription.id] = wishes
        return GuaranteedSubscriber(
            subscriber=subscription.id,
            is_accepted=True,
            bytes_per_s=sum(each.bytes_per_s for each in answer),
            latency_s=max(each.latency_s for each in answer),
        )

    def by_now(self, guaranteed: GuaranteedSubscriber) -> GuaranteedSubscriber:
        """Return what a subscriber was told with the latency that it has after others have asked."""
        wishes = self._had.get(guaranteed.subscriber)
        if wishes is None:
            return guaranteed
        return replace(guaranteed, latency_s=max(self._latency_s[wish.subscription] for wish in wishes))

    def kept(self) -> dict[str, tuple[Shares, Pinned]]:
        """Return by what each broker keeps all that is promised."""
        return {name: shares_and_pins(node.branches) for name, node in self._nodes.items()}

    def _what_fits(self, wish: ReservationRequest, publishers: Collection[str], refused: Refused) -> Refused:
        """Return a refusal with what was tried to fit, of all publishers."""
        assert wish.home is not None, "everybody is somewhere"
        fitting = Fitting(wish, refused)
        while (trial := fitting.next_trial()) is not None:
            wishes = _for_each(trial, publishers)
            answer = self._try_all(wish.home, wishes)
            if isinstance(answer, Refused):
                fitting.denied(answer)
            else:
                fitting.accepted(max(each.latency_s for each in answer))
                self._give_back(wish.home, wishes)
        return fitting.refused

    def _try_all(self, home: str, wishes: list[ReservationRequest]) -> list[Accepted] | Refused:
        """Ask for all of it, or give back what was there; nobody is moved."""
        accepted: list[Accepted] = []
        for wish in wishes:
            news = self._ask(home, wish)
            if isinstance(news, Refused):
                self._give_back(home, wishes)
                is_sure = (
                    not accepted or news.reason == RefusalReason.TOO_SLOW
                )  # else they take the room, perhaps
                return news._replace(
                    is_definite=news.is_definite and is_sure,
                    latency_s=max(news.latency_s, self._fastest_s(home, wishes)),
                )
            accepted.append(news)
        return accepted

    def _refused(self, subscription: Subscription, refused: Refused) -> GuaranteedSubscriber:
        return GuaranteedSubscriber(
            subscriber=subscription.id,
            is_accepted=False,
            bytes_per_s=refused.fits_bytes_per_s,
            latency_s=refused.latency_s,
            reason=refused.reason.value,
            is_definite=refused.is_definite,
            is_shared=refused.is_sharing_better,
            why=why(refused),
        )

    def _ask(self, home: str, wish: ReservationRequest) -> Accepted | Refused:
        self._news = []
        self._perform(home, self._nodes[home].subscribe(wish, self._now_s))
        self._settle(home)
        told: Accepted | Refused = _unknown(wish.subscription, RefusalReason.NO_ANSWER)
        for each in self._news:
            if isinstance(each, Accepted | Refused) and each.subscription == wish.subscription:
                told = each
        return told

    def _settle(self, home: str) -> None:
        """Let ways be given back that were left, and note what is told to others."""
        self._now_s += NEVER.answer_s_max
        self._perform(home, self._nodes[home].beat(self._now_s))
        self._latency_s |= {
            each.subscription: each.latency_s for each in self._news if isinstance(each, Accepted)
        }

    def _fastest_s(self, home: str, wishes: Iterable[ReservationRequest]) -> float:
        """Return what the fastest way from the farthest publisher takes."""
        ways = self._ways[home]
        return max([ways.fastest_from_s(self._entries[each.event_type]) or 0.0 for each in wishes])

    def _give_back(self, home: str, wishes: Iterable[ReservationRequest]) -> None:
        for wish in wishes:
            self._perform(home, self._nodes[home].unsubscribe(wish.subscription, self._now_s))

    def _perform(self, name: str, effects: Iterable[Effect]) -> None:
        waiting = deque([(name, effect) for effect in effects])
        while waiting:
            sender, effect = waiting.popleft()
            if not isinstance(effect, SendSignal):
                self._news.append(effect)
                continue
            answers = self._nodes[effect.to].receive(sender, effect.message, self._now_s)
            waiting.extend([(effect.to, each) for each in answers])


def wanted_of(
    scenario: Scenario, published: Mapping[str, Collection[Mapping[str, Value]]]
) -> dict[str, list[str]]:
    """Return, by subscriber who asks for a guarantee, the publishers with a profile that it wants.

    `published` is what the first of each publisher's events say, also where there are none in the run.
    """
    profiled = [each.name for each in scenario.publishers if each.profile is not None]
    return {
        each.id: [name for name in profiled if any(map(each.filter.matches, published.get(name, ())))]
        for each in scenario.subscriptions
        if each.qos.guarantee is not None
    }


def _for_each(wish: ReservationRequest, publishers: Collection[str]) -> list[ReservationRequest]:
    """Return the same wish for what each of them publishes."""
    names = [(f"{wish.subscription}/{publisher}", publisher) for publisher in publishers]
    return [replace(wish, subscription=name, event_type=publisher) for name, publisher in names]


def _unknown(subscription: str, reason: RefusalReason) -> Refused:
    return Refused(subscription, None, reason, is_definite=False, room_bytes_per_s=0, latency_s=math.inf)


def _entry(publisher: Publisher) -> str:
    """Return the node where a publisher's events enter."""
    return publisher.broker if publisher.access is None else publisher.access.source
