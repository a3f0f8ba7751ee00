"""The parts of a broker, put together without sockets: what `Server` runs, and what tests drive by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from betimes.broker.access.authentication import AccessControl
from betimes.broker.admission.admission import AdmissionControl
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.durability.restore import Rows, first_number, next_epoch, restore
from betimes.broker.durability.store import Store
from betimes.broker.guarantees.guarantees import Guarantees
from betimes.broker.handover.incoming import Handovers
from betimes.broker.links.custody import Custody
from betimes.broker.links.duplicates import SeenEvents
from betimes.broker.links.federation import Federation
from betimes.broker.links.handshake import LinkSecret, Nonce, random_nonce
from betimes.broker.links.local_demand import LocalDemand, fetched
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.broker.observe.statistics import ObservedParts
from betimes.broker.peers.overlay import Dial, PeerOverlay
from betimes.broker.peers.settings import PeerPlan
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.storage.newest_numbers import NewestNumbers
from betimes.broker.storage.sqlite_file import StoreFile
from betimes.model.network_settings import NetworkSettings
from betimes.model.server_settings import ServerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """A store, the rows that it was opened with, and what messages call it."""

    store: Store
    rows: Rows
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """A broker without sockets."""

    hub: Hub
    handlers: PacketHandlers
    store: Store | None = None
    federation: Federation | None = None
    admission: AdmissionControl | None = None
    guarantees: Guarantees | None = None
    handovers: Handovers | None = None

    @property
    def observed(self) -> ObservedParts:
        """Return the parts that statistics are gathered from."""
        return ObservedParts(
            hub=self.hub,
            federation=self.federation,
            admission=self.admission,
            guarantees=self.guarantees,
            handovers=self.handovers,
        )


def compose(
    settings: ServerSettings,
    access_control: AccessControl,
    *,
    now_s: float,
    wall_s: float,
    epoch: int,
    kept: OpenStore | None = None,
    recorder: EventRecorder | None = None,
    model_came: Callable[[], None],
    nonce: Nonce = random_nonce,
) -> Composition:
    """Return the broker that the settings ask for, with what its store kept.

    `wall_s` is the time of day, `epoch` is later than that of any earlier life of this broker,
    `model_came` is called when the control centre has sent a model, and `nonce` makes those of links.
    """
    number = int(wall_s * 1e6) if kept is None else first_number(kept.store, kept.rows, wall_s=wall_s)
    store = None if kept is None else kept.store
    replay = None
    if settings.buffer is not None:
        replay = ReplayBuffer(settings.buffer, settings.name, number, clock_ahead_s=wall_s - now_s)
    hub = Hub(
        settings.name,
        access_control=access_control,
        limits=settings.limits,
        first_number=number,
        recorder=recorder,
        replay=replay,
        keys_table=None if store is None else store.keys,
        note_retained=None if store is None else store.retain,
    )
    if kept is not None:
        epoch = next_epoch(kept.store, kept.rows, epoch)
        hub.extend(kept.store)
        restore(hub, kept.store, kept.rows, source=kept.source, now_s=now_s, wall_s=wall_s)
        kept.store.commit()
    admission = None
    if settings.control_secret:
        admission = admit_by_models(hub, settings.control_secret, kept, recorder, model_came)
    handlers = PacketHandlers(hub)
    if settings.network is None:
        return Composition(hub=hub, handlers=handlers, store=store, admission=admission)
    if store is not None:
        store.deliveries.start_after(epoch)  # a number is never used again, also after a restart
    federation = federate(hub, settings.network, epoch=epoch, store=store, recorder=recorder, nonce=nonce)
    guarantees = Guarantees(hub, federation.reserved)
    handovers = Handovers(hub, federation, store, now_s)
    hub.extend(guarantees)
    hub.extend(handovers)
    federation.begin()
    return Composition(
        hub=hub,
        handlers=handlers,
        store=store,
        federation=federation,
        admission=admission,
        guarantees=guarantees,
        handovers=handovers,
    )


def admit_by_models(
    hub: Hub,
    secret: str,
    kept: OpenStore | None,
    recorder: EventRecorder | None,
    model_came: Callable[[], None],
) -> AdmissionControl:
    """Make a hub admit subscriptions by the models of a control centre that knows the secret."""
    facts = None if kept is None else kept.store.facts
    admission = AdmissionControl(
        hub.name,
        secret,
        offer=hub.publishing.offer,
        wake=model_came,
        newest=NewestNumbers(facts, {} if kept is None else dict(kept.rows(kept.store.facts))),
        recorder=recorder,
    )
    hub.extend(admission)
    return admission


def federate(
    hub: Hub,
    settings: NetworkSettings,
    *,
    epoch: int,
    store: Store | None,
    recorder: EventRecorder | None,
    nonce: Nonce = random_nonce,
) -> Federation:
    """Make a hub part of a network of brokers."""
    replay = hub.replay
    federation = Federation(
        hub.name,
        settings,
        epoch=epoch,
        packet_bytes_max=hub.limits.packet_bytes_max,
        counters=hub.counters,
        secret=LinkSecret(settings.secret, nonce),
        deliver=hub.publishing.take_from_afar,
        lose=hub.publishing.lose_many,
        recorder=None if recorder is None else recorder.recorder,
        custody=None if store is None else Custody(store),
        seen=None if store is None else SeenEvents(table=store.seen, found=store.seen_found),
        wanted=LocalDemand(hub.name, [] if replay is None else fetched(hub.name, replay.settings)),
    )
    hub.join(federation)
    return federation


def join_overlay(
    hub: Hub,
    plan: PeerPlan,
    *,
    life: int,
    dial: Dial,
    refused: Callable[[str], None],
    now_s: float,
    seed: int | None = None,
    nonce: Nonce = random_nonce,
) -> PeerOverlay:
    """Make a hub part of an overlay of peers; `life` is later than any earlier one at this address."""
    assert hub.name == plan.address, "events are numbered by where they come from"
    overlay = PeerOverlay(
        plan,
        life=life,
        secret=LinkSecret(plan.secret, nonce),
        packet_bytes_max=hub.limits.packet_bytes_max,
        deliver=hub.publishing.take_from_afar,
        lose=hub.publishing.lose_many,
        chance=random.Random(seed).random,
        dial=dial,
        refused=refused,
        now_s=now_s,
    )
    hub.join(overlay)
    return overlay


@contextmanager
def open_store(settings: ServerSettings) -> Iterator[tuple[OpenStore | None, StoreFile | None]]:
    """Open the store that the settings name, if they do; it is closed in the end."""
    if settings.store is None:
        yield None, None
        return
    file = StoreFile(settings.store, sync=settings.store_sync)
    try:
        store = Store(file.write)
        file.make(store.tables)
        yield OpenStore(store=store, rows=file.rows, source=settings.store), file
    finally:
        file.close()
