"""Do peers reach each other over real sockets, also encrypted, and learn that nobody is there?"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import mqtt5
import pytest
import trustme
from tests.broker.listening import calling, new_listener, run, subscribe, until
from tests.broker.peer_networks import plan
from tests.broker.talking import OPEN_ACCESS

from betimes.broker.composition import join_overlay
from betimes.broker.core.hub import Hub
from betimes.broker.net.dialer import PeerDialer, peer_tls
from betimes.broker.net.listener import Endpoint, Listener, bound
from betimes.broker.net.supervisor import Supervisor
from betimes.broker.net.tls import tls_context
from betimes.broker.peers.overlay import PeerOverlay
from betimes.terminal.fleet import free_ports

pytestmark = pytest.mark.live


@asynccontextmanager
async def peer(*, join: str = "", context: Any = None, **changes: Any) -> AsyncIterator[Listener]:
    place = bound(Endpoint(port=0, tls=context))
    hub = Hub(f"127.0.0.1:{place.port}", access_control=OPEN_ACCESS)
    listener = new_listener(hub)
    await listener.start([place])
    told = replace(plan("x", **changes), address=hub.name, join=(join,) if join else (), cycle_s=0.1)
    tasks = Supervisor(lambda: None)
    dialling = PeerDialer(listener, peer_tls(told), tasks)
    join_overlay(hub, told, life=1, dial=dialling.dial, refused=lambda _text: None, now_s=listener.now_s())
    try:
        yield listener
    finally:
        await tasks.stop()
        await listener.stop()


def overlay_of(listener: Listener) -> PeerOverlay:
    overlay = listener.hub.network
    assert isinstance(overlay, PeerOverlay)
    return overlay


def links(listener: Listener) -> set[str]:
    return set(overlay_of(listener).mail.links)


def is_covered(listener: Listener) -> bool:
    subscriber = overlay_of(listener).subscriber
    return bool(subscriber.dz) and not subscriber.lines.uncovered()


def test_an_event_goes_from_socket_to_socket():
    async def test():
        async with peer(published="x >= 0") as a, peer(join=a.hub.name, wanted="x > 50") as b:
            await until(lambda: is_covered(b))
            async with calling(b, "reader") as reader, calling(a, "writer") as writer:
                await reader.ask(subscribe("#"))
                writer.write(mqtt5.PublishPacket("t", b"hello", user_properties=[("x", "60"), ("y", "1")]))
                assert (await reader.read()).payload == b"hello"

    run(test())


def test_links_may_be_encrypted(tmp_path):
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(tmp_path / "a.pem")
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")

    async def test():
        tls = tls_context(str(tmp_path / "a.pem"), None, None)
        async with (
            peer(published="x >= 0", context=tls) as a,
            peer(join=a.hub.name, wanted="x > 50", tls=True, authorities=str(tmp_path / "ca.pem")) as b,
            peer(join=a.hub.name, wanted="x > 50", tls=True) as distrustful,
        ):
            await until(lambda: is_covered(b))
            assert links(a) == {b.hub.name}
            assert not links(distrustful)

    run(test())


def test_where_nobody_listens_is_nobody_and_later_somebody():
    async def test():
        (port,) = free_ports(1)
        async with peer(join=f"127.0.0.1:{port}", wanted="x > 50") as b:
            overlay = overlay_of(b)
            await until(lambda: overlay._cycles > 3)
            assert not links(b)
            async with peer(join=b.hub.name, published="x >= 0") as a:
                await until(lambda: is_covered(b) and links(a) == {b.hub.name})
            await until(lambda: not links(b))
            assert not is_covered(b)

    run(test())


def test_another_secret_keeps_peers_apart():
    async def test():
        async with peer(published="x >= 0") as a, peer(join=a.hub.name, secret="other", wanted="x > 5") as b:
            overlay = overlay_of(b)
            await until(lambda: overlay.complaints)
            assert "does not know the secret" in overlay.complaints[0]
            assert not links(a)

    run(test())
