"""Do other people's clients work with the broker over websockets, plain and over TLS?"""

from __future__ import annotations

import asyncio
import ssl

import aiomqtt
import pytest
import trustme
from tests.interop.brokers import HOST, WITHIN_S, running_broker
from tests.interop.test_paho import BOTH, Client

from betimes.broker.net.listener import Endpoint
from betimes.broker.net.tls import tls_context
from betimes.model.server_settings import Kind

pytestmark = pytest.mark.live

PLAIN = Endpoint(port=0, kind=Kind.WEBSOCKET)
PAYLOAD = b"x" * 200_000  # many frames' worth for some clients


@pytest.fixture
def secured(tmp_path) -> tuple[Endpoint, ssl.SSLContext]:
    """Return where to listen over TLS, and what a client has to trust."""
    authority, both = trustme.CA(), tmp_path / "both.pem"
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(both)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return Endpoint(port=0, kind=Kind.WEBSOCKET, tls=tls_context(str(both))), context


def check_paho(endpoint: Endpoint, version, context: ssl.SSLContext | None) -> None:
    with running_broker(endpoint=endpoint) as broker:
        client = Client("c", version, transport="websockets")
        if context is not None:
            client.paho.tls_set_context(context)
        assert client.connect(broker) == 0
        for qos in (0, 1, 2):
            assert client.subscribe("t", qos)[0] == qos
            for number in range(20):
                client.publish("t", PAYLOAD + str(number).encode(), qos)
            for number in range(20):
                assert client.get().payload == PAYLOAD + str(number).encode()
        client.leave()


@BOTH
def test_paho_talks_over_websockets(version):
    check_paho(PLAIN, version, None)


@BOTH
def test_paho_talks_over_websockets_and_tls(version, secured):
    check_paho(secured[0], version, secured[1])


def test_paho_sends_the_will_of_who_vanishes():
    with running_broker(endpoint=PLAIN) as broker:
        watcher, mortal = (Client(name, transport="websockets") for name in ("watcher", "mortal"))
        watcher.connect(broker)
        watcher.subscribe("gone", 1)
        mortal.paho.will_set("gone", b"lost", 1)
        mortal.connect(broker)
        mortal.paho.loop_stop()
        found = mortal.paho.socket()
        assert found is not None
        found.close()
        assert watcher.get().payload == b"lost"
        watcher.leave()


def test_aiomqtt_talks_over_websockets_and_tls(secured):
    endpoint, context = secured

    async def test(port: int) -> None:
        options = {"transport": "websockets", "websocket_path": "/mqtt", "tls_context": context}
        async with aiomqtt.Client(HOST, port, **options) as client:
            await client.subscribe("t", qos=2)
            await client.publish("t", PAYLOAD, qos=2)
            assert (await anext(aiter(client.messages))).payload == PAYLOAD

    with running_broker(endpoint=endpoint) as broker:
        asyncio.run(asyncio.wait_for(test(broker.port), WITHIN_S))
