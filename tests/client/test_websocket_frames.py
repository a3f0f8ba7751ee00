"""Does MQTT travel in websocket frames, however they are cut, and is it told where there is no websocket?"""

from __future__ import annotations

import mqtt5
import pytest
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.server import ServerProtocol

from betimes.client.addresses import read_address
from betimes.client.broker_connection import protocol_for
from betimes.client.websocket_frames import SUBPROTOCOL, WebsocketClientProtocol
from betimes.mqtt.client_protocol import Cause, ClientState, Ended, Event


class Server:
    """The other end of a websocket, without a socket."""

    def __init__(self, client: WebsocketClientProtocol) -> None:
        self._server = ServerProtocol(subprotocols=[SUBPROTOCOL])
        self._client = client
        self.path = ""
        client.start(0.0)

    def shake_hands(self) -> list[Event]:
        self._server.receive_data(self._client.take_outbox(0.0))
        (request,) = self._server.events_received()
        assert isinstance(request, Request)
        self.path = request.path
        self._server.send_response(self._server.accept(request))
        return self._client.receive(b"".join(self._server.data_to_send()), 0.0)

    def heard(self) -> bytes:
        self._server.receive_data(self._client.take_outbox(0.0))
        return b"".join(each.data for each in self._server.events_received() if isinstance(each, Frame))

    def say(self, *frames: bytes, step: int = 1_000_000) -> list[Event]:
        for each in frames:
            self._server.send_binary(each)
        return self.hand_over(step)

    def hand_over(self, step: int = 1_000_000) -> list[Event]:
        data, events = b"".join(self._server.data_to_send()), []
        for at in range(0, len(data), step):
            events += self._client.receive(data[at : at + step], 0.0)
        return events

    def close(self) -> list[Event]:
        self._server.send_close(CloseCode.NORMAL_CLOSURE)
        return self.hand_over()

    def say_text(self) -> list[Event]:
        self._server.send_text(b"hello")
        return self.hand_over()


def client(text: str = "ws://h:80/live") -> WebsocketClientProtocol:
    found = protocol_for(read_address(text), mqtt5.ConnectPacket("c"))
    assert isinstance(found, WebsocketClientProtocol)
    return found


@pytest.mark.mqtt("MQTT-6.0.0-2", "MQTT-6.0.0-3")
def test_connect_waits_for_the_handshake_and_packets_may_span_frames():
    protocol = client()
    server = Server(protocol)
    assert server.shake_hands() == []
    assert server.path == "/live"
    assert server.heard() == mqtt5.ConnectPacket("c").write()
    for step in (1, 3, 1_000):
        protocol = client()
        server = Server(protocol)
        server.shake_hands()
        server.heard()
        data = mqtt5.ConnAckPacket().write() + mqtt5.PublishPacket("t", b"x").write()
        events = server.say(data[:3], data[3:], step=step)
        assert [type(each) for each in events] == [mqtt5.ConnAckPacket, mqtt5.PublishPacket]
        protocol.publish("t", b"y")
        assert server.heard() == mqtt5.PublishPacket("t", b"y").write()
        protocol.disconnect()
        assert server.heard().startswith(mqtt5.DisconnectPacket().write())


def test_a_server_that_is_none_of_websockets_is_told():
    for said in (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b" \x02\x00\x00\x00\r\n\r\n"):
        protocol = client("ws://h")
        protocol.start(0.0)
        protocol.take_outbox(0.0)
        (ended,) = protocol.receive(said, 0.0)
        assert isinstance(ended, Ended)
        assert ended.cause is Cause.TRANSPORT
        assert ended.reason.startswith("no websocket: ")


@pytest.mark.mqtt("MQTT-6.0.0-1")
@pytest.mark.parametrize("end", [Server.close, Server.say_text])
def test_a_websocket_that_is_closed_or_carries_text_is_the_end(end):
    protocol = client()
    server = Server(protocol)
    server.shake_hands()
    assert end(server) == [Ended(Cause.TRANSPORT, 0, "the broker closed the websocket")]
    assert protocol.state is ClientState.ENDED


def test_other_addresses_have_bare_connections():
    assert not isinstance(
        protocol_for(read_address("mqtt://h"), mqtt5.ConnectPacket("c")), WebsocketClientProtocol
    )
