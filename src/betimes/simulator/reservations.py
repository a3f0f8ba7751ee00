"""The guarantees of a scenario's subscribers, and the links that they are reserved on (004).

The type of an event is its publisher, if that states a `qos_profile`. The nodes are those of live brokers,
over the scenario's links, and their messages take no time: all subscribers ask before the first event is
published, one after the other in the order of the file, and a reservation that is moved to another route for
one subscriber is there before the next one asks. A refused subscriber takes part without a guarantee.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from betimes.model.events import Value
from betimes.model.subscriptions import Subscription
from betimes.model.topology import Link, Scenario
from betimes.reservations.flow_tree import Pinned, Shares, shares_and_pins
from betimes.reservations.node import PROMISED_SHARE_MAX, ReservingNode, ReservingSettings
from betimes.reservations.outcomes import Accepted, RefusalReason, Refused, why
from betimes.reservations.overlay.mesh import MeshWays
from betimes.reservations.requests import Effect, Fitting, ReservationRequest
from betimes.reservations.signals import Manner, SendSignal
from betimes.routing.routing_table import routing_tables

NEVER = ReservingSettings(refresh_every_s=math.inf, lapse_after_s=math.inf)  # no node leaves


@dataclass(frozen=True, slots=True, kw_only=True)
class GuaranteedSubscriber:
    """The answer to one subscriber's request for a guarantee."""

    subscriber: str
    is_accepted: bool
    bytes_per_s: int  # of all publishers together; if refused, what would have fitted
    latency_s: float  # of the longest route; if too slow, of the fastest
    reason: str = ""
    is_definite: bool = True
    is_shared: bool = False  # what would have fitted is the reservation of others
    why: str = ""  # the refusal, in words


class Reserving:
    """The reserving nodes of a scenario, with some of its links."""

    def __init__(self, scenario: Scenario, names: Collection[str], links: Iterable[Link]) -> None:
        up = {(link.source, link.target): link for link in links}
        self._capacity = {
            ends: int(1000.0 * PROMISED_SHARE_MAX / link.s_per_kb_mean) if link.s_per_kb_mean else 10**12
            for ends, link in up.items()
        }
        back = [
            replace(link, source=target, target=source)  # carries no reservations, but messages of the nodes
            for (source, target), link in up.items()
            if (target, source) not in up
        ]
        all_links = [*up.values(), *back]
        sizes_kb = [each.size_kb.mean for each in scenario.publishers]
        tables = routing_tables(tuple(names), all_links, tuple(names))
        self._routes = {
            name: MeshWays(table, up.values(), size_kb=2.0 * max(sizes_kb, default=1.0))
            for name, table in tables.items()
        }
        self._entries = {  # the nodes where events enter
            each.name: each.broker if each.access is None else each.access.source
            for each in scenario.publishers
        }
        self._nodes = {
            name: ReservingNode(
                routes,
                NEVER,
                lambda neighbour, own=name: self._capacity.get((own, neighbour), 0),  # type: ignore[misc]
                lambda neighbour, own=name: self._capacity.get((neighbour, own), 0),  # type: ignore[misc]
            )
            for name, routes in self._routes.items()
        }
        self._now_s = 0.0
        self._news: list[Effect] = []
        self._had: dict[str, list[ReservationRequest]] = {}  # by subscriber, all its granted requests
        self._latency_s: dict[str, float] = {}  # by request, as last reported
        for publisher in scenario.publishers:
            if publisher.profile is not None:
                bytes_per_s = round(1000.0 * publisher.profile.bandwidth_kb_per_s)
                node = self._entries[publisher.name]
                self._perform(node, self._nodes[node].advertise(publisher.name, bytes_per_s, self._now_s))

    def ask(self, subscription: Subscription, publishers: Collection[str]) -> GuaranteedSubscriber:
        """Reserve what a subscriber asks for, of all these publishers, or nothing."""
        guarantee = subscription.qos.guarantee
        assert guarantee is not None, "the subscription asks for a guarantee"
        kb_per_s, home = guarantee.bandwidth_kb_per_s, subscription.home
        request = ReservationRequest(
            subscription=subscription.id,
            event_type="",  # set for each publisher
            bytes_per_s=None if kb_per_s is None else max(round(1000.0 * kb_per_s), 1),
            latency_s_max=guarantee.latency_s_max,
            manner=Manner.COORDINATES,
            home=home,
            is_trial=True,
        )
        requests = _for_each(request, publishers)
        if not requests:
            return self._refused(subscription, _unknown(subscription.id, RefusalReason.NOBODY_PUBLISHES))
        answer = self._try_all(home, requests)
        if isinstance(answer, Refused):
            return self._refused(subscription, self._what_fits(request, publishers, answer))
        for each in requests:
            self._perform(home, self._nodes[home].confirm(each.subscription, self._now_s))
        self._settle(home)
        self._had[subscription.id] = requests
        return GuaranteedSubscriber(
            subscriber=subscription.id,
            is_accepted=True,
            bytes_per_s=sum(each.bytes_per_s for each in answer),
            latency_s=max(each.latency_s for each in answer),
        )

    def by_now(self, guaranteed: GuaranteedSubscriber) -> GuaranteedSubscriber:
        """Return a subscriber's answer with the latency that it has after others have asked."""
        requests = self._had.get(guaranteed.subscriber)
        if requests is None:
            return guaranteed
        return replace(
            guaranteed, latency_s=max(self._latency_s[request.subscription] for request in requests)
        )

    def kept(self) -> dict[str, tuple[Shares, Pinned]]:
        """Return, for each broker, what it enforces."""
        return {name: shares_and_pins(node.branches) for name, node in self._nodes.items()}

    def _what_fits(
        self, request: ReservationRequest, publishers: Collection[str], refused: Refused
    ) -> Refused:
        """Return a refusal with what would have fitted, of all publishers."""
        assert request.home is not None, "every request has a home"
        fitting = Fitting(request, refused)
        while (trial := fitting.next_trial()) is not None:
            requests = _for_each(trial, publishers)
            answer = self._try_all(request.home, requests)
            if isinstance(answer, Refused):
                fitting.denied(answer)
            else:
                fitting.accepted(max(each.latency_s for each in answer))
                self._give_back(request.home, requests)
        return fitting.refused

    def _try_all(self, home: str, requests: list[ReservationRequest]) -> list[Accepted] | Refused:
        """Try to reserve all of it, or release what was reserved; no other reservation is moved."""
        accepted: list[Accepted] = []
        for request in requests:
            news = self._ask(home, request)
            if isinstance(news, Refused):
                self._give_back(home, requests)
                is_sure = (
                    not accepted or news.reason == RefusalReason.TOO_SLOW
                )  # otherwise they may take the room
                return news._replace(
                    is_definite=news.is_definite and is_sure,
                    latency_s=max(news.latency_s, self._fastest_s(home, requests)),
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

    def _ask(self, home: str, request: ReservationRequest) -> Accepted | Refused:
        self._news = []
        self._perform(home, self._nodes[home].subscribe(request, self._now_s))
        self._settle(home)
        answer: Accepted | Refused = _unknown(request.subscription, RefusalReason.NO_ANSWER)
        for each in self._news:
            if isinstance(each, Accepted | Refused) and each.subscription == request.subscription:
                answer = each
        return answer

    def _settle(self, home: str) -> None:
        """Release routes that are no longer used, and record what others are notified of."""
        self._now_s += NEVER.answer_s_max
        self._perform(home, self._nodes[home].beat(self._now_s))
        self._latency_s |= {
            each.subscription: each.latency_s for each in self._news if isinstance(each, Accepted)
        }

    def _fastest_s(self, home: str, requests: Iterable[ReservationRequest]) -> float:
        """Return the latency of the fastest route from the farthest publisher."""
        routes = self._routes[home]
        return max([routes.fastest_from_s(self._entries[each.event_type]) or 0.0 for each in requests])

    def _give_back(self, home: str, requests: Iterable[ReservationRequest]) -> None:
        for request in requests:
            self._perform(home, self._nodes[home].unsubscribe(request.subscription, self._now_s))

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
    """Return, by subscriber that asks for a guarantee, the publishers with a profile that it wants.

    `published` are the attributes of the first events of each publisher, also where a run has none.
    """
    profiled = [each.name for each in scenario.publishers if each.profile is not None]
    return {
        each.id: [name for name in profiled if any(map(each.filter.matches, published.get(name, ())))]
        for each in scenario.subscriptions
        if each.qos.guarantee is not None
    }


def _for_each(request: ReservationRequest, publishers: Collection[str]) -> list[ReservationRequest]:
    """Return the same request for the events of each of them."""
    names = [(f"{request.subscription}/{publisher}", publisher) for publisher in publishers]
    return [replace(request, subscription=name, event_type=publisher) for name, publisher in names]


def _unknown(subscription: str, reason: RefusalReason) -> Refused:
    return Refused(subscription, None, reason, is_definite=False, room_bytes_per_s=0, latency_s=math.inf)
