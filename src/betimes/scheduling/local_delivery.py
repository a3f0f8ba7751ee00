"""Delivery to the subscribers of this broker: which of them get an event in time, and in order."""

from __future__ import annotations

from betimes.model.events import Event, EventId
from betimes.model.subscriptions import Subscription
from betimes.model.telemetry import Reason
from betimes.scheduling.demand_table import Demand
from betimes.scheduling.effects import Deliver, Drop, Effect, made

NONE: frozenset[str] = frozenset()


class LocalDelivery:
    """Delivers at one broker, and remembers the latest event of each origin that each subscriber received."""

    def __init__(self, here: str) -> None:
        self._here = here
        self._newest: dict[str, int] = {}  # by origin: the highest number delivered to any subscriber
        self._last_number: dict[str, dict[str, int]] = {}  # by origin and subscriber

    def deliver(self, event: Event, demand: Demand, age_s: float) -> list[Effect]:
        """Deliver an event to the local subscribers whose bound is open; for the others it has expired."""
        here = demand.at_home.get(self._here, ())
        # `delay_s_allowed` of each; the publisher's bound is the same for all, so it is read once
        is_open = age_s <= event.deadline_s
        in_time = [found for found in here if age_s <= found.qos.delay_s_max] if is_open else []
        late = len(here) - len(in_time)
        effects: list[Effect] = []
        if in_time:
            overtaken = self._out_of_order(event.id, in_time)
            effects.append(made(Deliver, (event, age_s, tuple(in_time) if late else here, overtaken)))
        if late:
            effects.append(Drop(event, age_s, Reason.EXPIRED, (self._here,), (late,)))
        return effects

    def _out_of_order(self, event_id: EventId, subscriptions: list[Subscription]) -> frozenset[str]:
        """Return the subscriptions that had a later event of this origin; remember the latest of each."""
        origin, number = event_id.origin, event_id.number
        last = self._last_number.setdefault(origin, {})
        overtaken = NONE
        if number < self._newest.get(origin, 0):
            overtaken = frozenset([each.id for each in subscriptions if last.get(each.id, 0) > number])
            subscriptions = [each for each in subscriptions if each.id not in overtaken]
        else:
            self._newest[origin] = number
        for each in subscriptions:
            last[each.id] = number
        return overtaken
