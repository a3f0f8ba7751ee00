"""Loading, or compiling, all kernels of hot loops before the first client waits for them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable

from betimes.broker.delivery import fan_out, scheduled_queue
from betimes.model.events import Event, EventId
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.mqtt import packet_writer
from betimes.routing.routing_table import routing_table
from betimes.routing.shortest_paths import shortest_paths
from betimes.scheduling.broker import Broker, BrokerSettings
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.strategies import strategy_named

log = logging.getLogger(__name__)

LONG_S = 2.0  # a start that takes longer is explained in the log
COMPILING = "loading the hot loops; after an installation they are compiled once, which takes some 20 s"


def prepare_kernels(strategies: Iterable[str] = ()) -> None:
    """Load or compile the kernels, and log that it takes long where it does."""
    telling = threading.Timer(LONG_S, log.warning, [COMPILING])
    telling.start()
    try:
        warm_up(strategies)
    finally:
        telling.cancel()


def warm_up(strategies: Iterable[str] = ()) -> None:
    """Load or compile the kernels of a broker, also for links that schedule by these strategies."""
    fan_out.warm_up()
    scheduled_queue.warm_up()
    packet_writer.warm_up()
    for strategy in strategies:
        _warm_up_scheduling(strategy)


def _warm_up_scheduling(strategy: str) -> None:
    """Load or compile the kernels that schedule links by a strategy."""
    names = ["a", "b", "c"]
    links = [Link(source="a", target=name, s_per_kb_mean=1.0) for name in names[1:]]
    subscriptions = [Subscription(id=name, home=name, qos=QoS(delay_s_max=1.0)) for name in names[1:]]
    routes = routing_table("a", links, shortest_paths(names, links, names[1:]))
    settings = BrokerSettings(strategy=strategy_named(strategy))
    broker = Broker("a", demand=DemandTable(names[1:], subscriptions), routes=routes, settings=settings)
    for number in range(4):
        broker.publish(Event(id=EventId("a", number), size_kb=0.1), 0.0)
    broker.link_free("b", 0.5, broker.onward_wait_s)
    broker.link_ready("c", 0.5, room=2)
    broker.sweep(10.0)
    broker.give_up_all(Reason.BROKER_LOST, 10.0)
