"""How does a hub become part of a network?"""

from __future__ import annotations

from betimes.broker.core.hub import Hub
from betimes.broker.guarantees.guarantees import Guarantees
from betimes.broker.handover.incoming import Handovers
from betimes.broker.links.custody import Custody
from betimes.broker.links.duplicates import Seen
from betimes.broker.links.federation import Federation
from betimes.broker.links.local_demand import Wanted, fetched
from betimes.model.events import Event, EventId
from betimes.model.network_settings import NetworkSettings
from betimes.model.subscriptions import QoS, Subscription
from betimes.model.telemetry import Reason
from betimes.model.topology import Link
from betimes.routing.routing_table import routing_table
from betimes.routing.shortest_paths import shortest_paths
from betimes.scheduling.broker import Broker, BrokerSettings
from betimes.scheduling.demand_table import DemandTable
from betimes.scheduling.strategies import strategy_named


def federate(hub: Hub, settings: NetworkSettings, *, epoch: int) -> Federation:
    """Make a hub part of a network; the epoch is later than that of any earlier life of this broker."""

    def lose(reason: Reason, subscribers: int) -> None:
        hub.lost[reason] += subscribers

    store = hub.store
    hub.network = hub.federation = Federation(
        hub.name,
        settings,
        epoch=epoch,
        packet_bytes_max=hub.limits.packet_bytes_max,
        deliver=hub.take_from_afar,
        lose=lose,
        recorder=None if hub.witness is None else hub.witness.recorder,
        custody=None if store is None else Custody(store),
        seen=None if store is None else Seen(table=store.seen, found=store.seen_found),
        wanted=Wanted(hub.name, [] if hub.replay is None else fetched(hub.name, hub.replay.settings)),
    )
    for session in hub.sessions.values():  # those that survived a restart
        for grant in session.grants.values():
            hub.federation.subscribed(grant)
    hub.handovers = Handovers(hub, hub.federation)
    hub.guarantees = Guarantees(hub, hub.federation.reserved)
    hub.federation.begin()
    return hub.federation


def warm_up(strategy: str) -> None:
    """Have the kernels of scheduling loaded, or compiled, before anybody waits for them."""
    names = ["a", "b", "c"]
    links = [Link(source="a", target=name, s_per_kb_mean=1.0) for name in names[1:]]
    wishes = [Subscription(id=name, home=name, qos=QoS(delay_s_max=1.0)) for name in names[1:]]
    routes = routing_table("a", links, shortest_paths(names, links, names[1:]))
    settings = BrokerSettings(strategy=strategy_named(strategy))
    broker = Broker("a", demand=DemandTable(names[1:], wishes), routes=routes, settings=settings)
    for number in range(4):
        broker.publish(Event(id=EventId("a", number), size_kb=0.1), 0.0)
    broker.link_free("b", 0.5, broker.onward_wait_s)
    broker.link_ready("c", 0.5, room=2)
    broker.sweep(10.0)
    broker.give_up_all(Reason.BROKER_LOST, 10.0)
