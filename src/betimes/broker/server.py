"""A broker on real sockets, from its settings: the composition root of the commands `broker` and `peer`.

    async with Server(ServerSettings(port=0, anonymous=True)) as server:
        async with betimes.connect(f"mqtt://127.0.0.1:{server.ports[0]}") as client:
            ...

Programs may use it as an in-process broker for their own tests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import AsyncExitStack
from dataclasses import replace
from http import HTTPStatus
from types import TracebackType
from typing import Self

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.setting_files import open_access, with_secrets
from betimes.broker.composition import Composition, compose, join_overlay, open_store
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.broker.net.background import keep_telemetry, load_models
from betimes.broker.net.dialer import PeerDialer, keep_link, link_tls, peer_tls
from betimes.broker.net.http_pages import Page, Pages
from betimes.broker.net.listener import Endpoint, Listener, bound
from betimes.broker.net.supervisor import Supervisor
from betimes.broker.net.tls import tls_context
from betimes.broker.observe.link_alarms import LinkAlarms
from betimes.broker.observe.prometheus import CONTENT_TYPE, exposition
from betimes.broker.observe.statistics import gathered
from betimes.broker.observe.sys_topics import SysTopics
from betimes.broker.observe.telemetry_log import TelemetryLog
from betimes.broker.peers.overlay import PeerOverlay
from betimes.broker.peers.settings import PeerPlan
from betimes.broker.warm_up import prepare_kernels
from betimes.model.errors import BetimesError
from betimes.model.network_settings import NetworkSettings
from betimes.model.server_settings import ServerSettings

log = logging.getLogger(__name__)


class AddressError(Exception):
    """An address that the broker cannot listen on; `reason` is what the system says."""

    def __init__(self, host: str, port: int, reason: OSError | UnicodeError, *, is_metrics: bool) -> None:
        super().__init__(f"{host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason
        self.is_metrics = is_metrics


def endpoints(settings: ServerSettings) -> list[Endpoint]:
    """Return where to listen, with the certificates that the settings name."""
    return [
        Endpoint(
            host=door.host or settings.host,
            port=door.port,
            kind=door.kind,
            tls=None if door.certificate is None else tls_context(door.certificate, door.key, door.client_ca),
        )
        for door in settings.doors
    ]


def _check_link_files(network: NetworkSettings | None) -> None:
    """Raise a BetimesError for a certificate of a link that cannot be used."""
    if network is not None:
        for terms in network.links:
            link_tls(terms, named=network.named_certificates)


class Server:
    """A broker, or a peer of an overlay if there is a plan for one; it serves as long as it is entered.

    It reads the files that the settings name: passwords, access list, secrets, certificates. Where it has
    ended by itself, `ended` is set, `failure` says why, and leaving it raises that.
    """

    def __init__(
        self,
        settings: ServerSettings,
        access_control: AccessControl | None = None,
        *,
        places: list[Endpoint] | None = None,
        plan: PeerPlan | None = None,
    ) -> None:
        self.settings = settings = with_secrets(settings)
        self.ended = asyncio.Event()  # by itself: a store that cannot be written, or peers that refuse it
        self.refusals: list[str] = []  # of the peers that it was to join
        self._access_control = open_access(settings) if access_control is None else access_control
        self._places = endpoints(settings) if places is None else places
        _check_link_files(settings.network)
        self._plan = plan
        self._stack = AsyncExitStack()
        self._tasks = Supervisor(self._broke)
        self._pages: Pages | None = None
        self._overlay: PeerOverlay | None = None
        self._listener: Listener | None = None

    # --- what it is

    @property
    def listener(self) -> Listener:
        """Return its sockets."""
        assert self._listener is not None, "the server is not entered"
        return self._listener

    @property
    def hub(self) -> Hub:
        """Return its state."""
        return self.listener.hub

    @property
    def overlay(self) -> PeerOverlay:
        """Return its place in an overlay of peers."""
        assert self._overlay is not None, "there was no plan for an overlay"
        return self._overlay

    @property
    def places(self) -> list[Endpoint]:
        """Return where it listens."""
        return self._places

    @property
    def ports(self) -> list[int]:
        """Return the port of each endpoint."""
        return self.listener.ports

    @property
    def metrics_port(self) -> int | None:
        """Return the port of the pages for machines; None: there are none."""
        return None if self._pages is None else self._pages.port

    @property
    def failure(self) -> BaseException | None:
        """Return why the server has ended by itself: its store, or a bug in a background task."""
        return self.listener.failure or self._tasks.failure

    # --- what it does

    async def __aenter__(self) -> Self:
        if self._listener is not None:
            raise BetimesError("this server was entered before\nhint: make one for each `async with`")
        network = self.settings.network
        await asyncio.to_thread(prepare_kernels, [] if network is None else [network.strategy])
        try:
            if self._plan is None:
                await self._start_broker()
            else:
                await self._start_peer(self._plan)
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
        if error is None and self.failure is not None:
            raise self.failure

    async def reload(self, access_control: AccessControl) -> int:
        """Apply new passwords, access list, certificates and authorities; return how many were cut off.

        A certificate that cannot be used is an error, and nothing has changed.
        """
        await self.listener.renew_tls([each.tls for each in endpoints(self.settings)])
        cut_off = self.hub.change_access_control(access_control, self.listener.now_s())
        self.listener.flush()
        return cut_off

    async def _start_broker(self) -> None:
        settings, loop = self.settings, asyncio.get_running_loop()
        kept, file = self._stack.enter_context(open_store(settings))
        logbook = None
        if settings.telemetry is not None:
            ahead_s = time.time() - loop.time()
            logbook = TelemetryLog(settings.name, settings.telemetry, clock_ahead_s=ahead_s)
            self._stack.callback(logbook.close)
        model_came = asyncio.Event()
        parts = compose(
            settings,
            self._access_control,
            now_s=loop.time(),
            wall_s=time.time(),
            epoch=time.time_ns(),
            kept=kept,
            recorder=None if logbook is None else logbook.recorder,
            model_came=model_came.set,
        )
        system = SysTopics(parts.observed, every_s=settings.sys_every_s)
        link_alarms = LinkAlarms(parts.observed, now_s=loop.time())

        def tick(now_s: float) -> None:
            system.tick(now_s)
            link_alarms.tick(now_s)

        listener = self._listener = Listener(
            parts.handlers,
            store=parts.store,
            file=file,
            tasks=self._tasks,
            broken=self._broke,
            tick=tick,
        )
        self._stack.push_async_callback(listener.stop)
        self._stack.push_async_callback(self._tasks.stop)
        if parts.admission is not None:
            sessions = parts.hub.sessions.values
            loading = load_models(parts.admission, sessions, model_came, loop.time)
            self._tasks.run(loading, "the loading of models")
        if logbook is not None:
            self._tasks.run(keep_telemetry(logbook, parts.hub), "the writing of telemetry")
        await self._listen(parts)
        if parts.federation is not None:
            for terms in parts.federation.settings.links:
                if terms.host:
                    self._tasks.run(keep_link(listener, parts.federation, terms), f"the link to {terms.to}")

    async def _start_peer(self, plan: PeerPlan) -> None:
        loop, (place,) = asyncio.get_running_loop(), self._places
        if not plan.address:
            place = self._bound(place)
            self._places = [place]
            plan = replace(plan, address=f"{place.host}:{place.port}")
        hub = Hub(
            plan.address,
            access_control=self._access_control,
            limits=self.settings.limits,
            first_number=int(time.time() * 1e6),  # numbers of an earlier run are not given again
        )
        listener = self._listener = Listener(
            PacketHandlers(hub), tasks=self._tasks, broken=self._broke, tick=lambda _now_s: None
        )
        self._stack.push_async_callback(listener.stop)
        self._stack.push_async_callback(self._tasks.stop)
        dialling = PeerDialer(listener, peer_tls(plan), self._tasks)
        self._overlay = join_overlay(
            hub, plan, life=time.time_ns(), dial=dialling.dial, refused=self._refused, now_s=loop.time()
        )
        await self._start(place)

    def _broke(self) -> None:
        """End by itself: `failure` says why."""
        self.ended.set()
        if self._listener is not None:
            self._listener.stop_listening()

    def _refused(self, text: str) -> None:
        self.refusals.append(text)
        self.ended.set()

    def _bound(self, place: Endpoint) -> Endpoint:
        """Return an endpoint whose socket is bound, so that its port is known."""
        try:
            return bound(place)
        except (OSError, UnicodeError) as error:
            raise AddressError(place.host, place.port, error, is_metrics=False) from None

    async def _listen(self, parts: Composition) -> None:
        """Begin to listen everywhere."""
        settings = self.settings
        for place in self._places:
            await self._start(place)
        if settings.metrics_port is not None:
            pages = _pages_about(parts, self.listener)
            try:
                await pages.start(settings.host, settings.metrics_port)
            except (OSError, UnicodeError) as error:
                raise AddressError(settings.host, settings.metrics_port, error, is_metrics=True) from None
            self._pages = pages
            self._stack.push_async_callback(pages.stop)

    async def _start(self, place: Endpoint) -> None:
        try:
            await self.listener.start([place])
        except (OSError, UnicodeError) as error:
            raise AddressError(place.host, place.port, error, is_metrics=False) from None


def _pages_about(parts: Composition, listener: Listener) -> Pages:
    """Return what is told of a broker over HTTP."""

    def metrics() -> tuple[HTTPStatus, str]:
        return HTTPStatus.OK, exposition(gathered(parts.observed, listener.now_s()), listener.lag_s)

    def ready_problem() -> str | None:
        missing = ", ".join(parts.hub.network.links_down(listener.now_s()))
        return listener.problem() or (f"no link to {missing}" if missing else None)

    return Pages(
        {
            "/metrics": Page(answer=metrics, content_type=CONTENT_TYPE),
            "/healthz": Page(answer=lambda: _verdict(listener.problem())),
            "/readyz": Page(answer=lambda: _verdict(ready_problem())),
        }
    )


def _verdict(problem: str | None) -> tuple[HTTPStatus, str]:
    if problem is None:
        return HTTPStatus.OK, "ok\n"
    return HTTPStatus.SERVICE_UNAVAILABLE, f"{problem}\n"
