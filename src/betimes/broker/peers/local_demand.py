"""The filters that a process wants of its overlay: the configured ones, or else those of its clients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from betimes.broker.delivery.session import BrokerSubscription
from betimes.matching.dz.spaces import CellBox, Space, cell_boxes
from betimes.model.events import Value
from betimes.model.filters import EVERYTHING, Filter

BOXES_MAX = 512  # of all filters together; with more, the process asks for everything


class PeerDemand:
    """The filters of one process."""

    def __init__(self, space: Space, configured: tuple[Filter, ...] | None) -> None:
        self._space = space
        self._configured = configured
        self._subscribed: Counter[Filter] = Counter()
        self.has_changed = configured is not None

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Return the filters; an event is wanted if it matches one of them."""
        return tuple(self._subscribed) if self._configured is None else self._configured

    def add(self, subscription: BrokerSubscription) -> None:
        """Add the filter of a client's subscription."""
        if self._configured is None and not subscription.pattern.startswith("$"):
            wanted = _filter(subscription)
            self._subscribed[wanted] += 1
            self.has_changed |= self._subscribed[wanted] == 1

    def remove(self, subscription: BrokerSubscription) -> None:
        """Remove the filter of a client's subscription."""
        if self._configured is None and not subscription.pattern.startswith("$"):
            wanted = _filter(subscription)
            self._subscribed[wanted] -= 1
            if not self._subscribed[wanted]:
                del self._subscribed[wanted]
                self.has_changed = True

    def boxes(self) -> tuple[CellBox, ...]:
        """Return the cells of all filters."""
        found = dict.fromkeys(box for wanted in self.filters for box in cell_boxes(self._space, wanted))
        if len(found) > BOXES_MAX:
            return cell_boxes(self._space, EVERYTHING)
        return tuple(found)

    def want(self, attributes: Mapping[str, Value]) -> bool:
        """Tell whether an event matches a filter; its cells only approximate that."""
        return any(wanted.matches(attributes) for wanted in self.filters)


def _filter(subscription: BrokerSubscription) -> Filter:
    return EVERYTHING if subscription.options is None else subscription.options.filter
