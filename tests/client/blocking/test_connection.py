"""Do packets go and come over each kind of connection, and is it said what goes wrong?"""

from __future__ import annotations

import socket
import ssl
from contextlib import closing
from dataclasses import replace

import mqtt5
import pytest
import trustme
from tests.interop.brokers import HOST, running_broker

from betimes.broker.access.authentication import AccessControl
from betimes.broker.net.listener import Endpoint
from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection, first_of
from betimes.client.errors import ConnectionLostError, LoginRefusedError, UnreachableError
from betimes.model.server_settings import Kind

pytestmark = pytest.mark.live


def talk(address: Address, **options) -> None:
    with closing(DirectConnection(address, **options)) as line:
        line.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")]))
        assert isinstance(first_of(line.receive(), mqtt5.SubAckPacket, "here"), mqtt5.SubAckPacket)
        line.send(*(mqtt5.PublishPacket("t", bytes(70_000)) for _ in range(20)))
        came: list[mqtt5.PublishPacket] = []
        while len(came) < 20:
            came += line.receive()
        assert {len(each.payload) for each in came} == {70_000}


def test_many_large_packets_come_whole():
    with running_broker() as broker:
        talk(Address(host=HOST, port=broker.port))


def test_websockets_carry_packets_too():
    with running_broker(endpoint=Endpoint(host=HOST, port=0, kind=Kind.WEBSOCKET)) as broker:
        talk(Address(scheme="ws", host=HOST, port=broker.port, path="/mqtt"))


def test_over_tls_the_certificate_is_checked(tmp_path):
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(server)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.crt"))
    with running_broker(endpoint=Endpoint(host=HOST, port=0, tls=server)) as broker:
        address = Address(scheme="mqtts", host=HOST, port=broker.port)
        talk(address, ca=tmp_path / "ca.crt")
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            DirectConnection(address)


def test_who_is_not_let_in_is_told_so():
    with running_broker(access_control=AccessControl(anonymous=False)) as broker:
        address = Address(host=HOST, port=broker.port)
        with pytest.raises(LoginRefusedError):
            DirectConnection(address)
        with pytest.raises(LoginRefusedError):
            DirectConnection(replace(address, user="anna", password="wrong"))


def test_nobody_there_and_nobody_who_answers_are_told_apart():
    with socket.create_server((HOST, 0)) as mute:
        address = Address(host=HOST, port=mute.getsockname()[1])
        with pytest.raises(ConnectionLostError, match=r"no answer within 0\.2 s"):
            DirectConnection(address, timeout_s=0.2)
    with pytest.raises(UnreachableError, match="cannot be reached"):
        DirectConnection(address)


def test_a_broker_that_ends_is_noticed():
    with running_broker() as broker:
        line = DirectConnection(Address(host=HOST, port=broker.port))
    with pytest.raises(ConnectionLostError):
        line.receive()
    line.close()


def test_what_is_not_mqtt_is_said_to_be_none():
    with pytest.raises(ConnectionLostError, match="PingRespPacket where ConnAckPacket"):
        first_of([mqtt5.PingRespPacket()], mqtt5.ConnAckPacket, "here")
