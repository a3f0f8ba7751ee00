"""Do other people's clients trust whom they should, and nobody else, over TLS?"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiomqtt
import mqtt5
import pytest
import trustme
from tests.interop.brokers import HOST, WITHIN_S, Broker, running_broker
from tests.interop.test_paho import BOTH, Client

from betimes.broker.net.listener import Endpoint
from betimes.broker.net.tls import tls_context

pytestmark = pytest.mark.live


@dataclass
class Keys:
    """An authority, and files of certificates that it signed."""

    authority: trustme.CA
    folder: Path

    @property
    def trusted(self) -> str:
        return str(self.folder / "authority.pem")

    def issued(self, name: str) -> str:
        path = self.folder / f"{name}.pem"
        self.authority.issue_cert(name).private_key_and_cert_chain_pem.write_to_path(path)
        return str(path)

    def trusting(self) -> ssl.SSLContext:
        """Return what a client takes for right that trusts this authority, and no other."""
        return ssl.create_default_context(cafile=self.trusted)


def new_keys(folder: Path) -> Keys:
    folder.mkdir()
    keys = Keys(trustme.CA(), folder)
    keys.authority.cert_pem.write_to_path(keys.trusted)
    return keys


@pytest.fixture
def keys(tmp_path) -> Keys:
    return new_keys(tmp_path / "keys")


@pytest.fixture
def strangers(tmp_path) -> Keys:
    return new_keys(tmp_path / "strangers")


@pytest.fixture
def broker(keys) -> Iterator[Broker]:
    with running_broker(endpoint=Endpoint(port=0, tls=tls_context(keys.issued(HOST)))) as found:
        yield found


@pytest.fixture
def choosy_broker(keys) -> Iterator[Broker]:
    context = tls_context(keys.issued(HOST), client_ca=keys.trusted)
    with running_broker(endpoint=Endpoint(port=0, tls=context)) as found:
        yield found


def check_paho(broker: Broker, version, context: ssl.SSLContext) -> None:
    """Publish to oneself with every quality, more than goes into one TLS record."""
    client = Client("c", version)
    client.paho.tls_set_context(context)
    assert client.connect(broker) == 0
    payload = b"x" * 100_000
    for qos in (0, 1, 2):
        assert client.subscribe("t", qos)[0] == qos
        client.publish("t", payload, qos)
        assert client.get().payload == payload
    client.leave()


@BOTH
def test_paho_talks_over_tls(broker, keys, version):
    check_paho(broker, version, keys.trusting())


@BOTH
def test_paho_shows_a_certificate_where_one_is_asked_for(choosy_broker, keys, version):
    context = keys.trusting()
    context.load_cert_chain(keys.issued("client"))
    check_paho(choosy_broker, version, context)


def test_paho_does_not_talk_to_a_stranger(broker, strangers):
    client = Client("c")
    client.paho.tls_set_context(strangers.trusting())
    with pytest.raises(ssl.SSLCertVerificationError):
        client.connect(broker)
    assert not broker.hub.sessions


def test_aiomqtt_talks_over_tls_and_not_to_a_stranger(broker, keys, strangers):
    async def test():
        async with aiomqtt.Client(HOST, broker.port, tls_context=keys.trusting()) as client:
            await client.subscribe("t", qos=1)
            await client.publish("t", "hello", qos=1)
            assert (await anext(aiter(client.messages))).payload == b"hello"
        with pytest.raises(aiomqtt.MqttError):
            async with aiomqtt.Client(HOST, broker.port, tls_context=strangers.trusting()):
                pass

    asyncio.run(asyncio.wait_for(test(), WITHIN_S))


def answer(broker: Broker, context: ssl.SSLContext | None) -> bytes:
    """Return what comes back for a CONNECT, as far as anything comes."""
    with suppress(OSError), socket.create_connection((HOST, broker.port), timeout=WITHIN_S) as line:
        talking = line if context is None else context.wrap_socket(line, server_hostname=HOST)
        with talking:
            talking.sendall(mqtt5.ConnectPacket("c").write())
            return talking.recv(1000)
    return b""


def test_who_shows_no_certificate_or_a_strangers_is_not_heard(choosy_broker, keys, strangers):
    shown = {"": b"", strangers.issued("client"): b"", keys.issued("client"): b"\x20"}
    for own, first in shown.items():
        context = keys.trusting()
        if own:
            context.load_cert_chain(own)
        assert answer(choosy_broker, context)[:1] == first


def test_who_speaks_no_tls_is_not_heard(broker):
    assert answer(broker, None)[:1] != b"\x20"
    assert not broker.hub.sessions
