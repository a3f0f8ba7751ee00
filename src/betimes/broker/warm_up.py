"""What is to be compiled, or loaded, before anybody waits for it? All that a broker runs in hot loops."""

from __future__ import annotations

from collections.abc import Iterable

from betimes.broker import joining
from betimes.broker.delivery import scheduled_queue as last_hop
from betimes.broker.delivery import subscriptions as audiences
from betimes.mqtt import packet_writer as telling


def warm_up(strategies: Iterable[str] = ()) -> None:
    """Have it done, also for links that schedule by these strategies."""
    audiences.warm_up()
    last_hop.warm_up()
    telling.warm_up()
    for strategy in strategies:
        joining.warm_up(strategy)
