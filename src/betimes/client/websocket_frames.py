"""MQTT in websocket frames [6], without I/O: the handshake and the frames are those of `websockets`.

A packet may span frames and a frame may hold several packets, so what frames carry goes on as if it had come
from a bare socket.
"""

from __future__ import annotations

from typing import Any

import mqtt5
from websockets.client import ClientProtocol as WebsocketProtocol
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from betimes.client.addresses import Address
from betimes.mqtt.client_protocol import ClientProtocol, Event

SUBPROTOCOL = Subprotocol("mqtt")


class WebsocketClientProtocol(ClientProtocol):
    """A connection whose bytes, both ways, are those of a websocket."""

    def __init__(self, address: Address, connect: mqtt5.ConnectPacket, **options: Any) -> None:
        super().__init__(connect, **options)
        host = f"[{address.host}]" if ":" in address.host else address.host
        uri = parse_uri(f"{address.scheme}://{host}:{address.port}{address.path}")
        self._websocket = WebsocketProtocol(uri, subprotocols=[SUBPROTOCOL], max_size=None)
        self._has_asked = False

    def receive(self, data: bytes, now_s: float) -> list[Event]:
        """Take in the handshake's answer, then frames."""
        websocket = self._websocket
        websocket.receive_data(data)
        payload = b""
        for each in websocket.events_received():
            if isinstance(each, Frame) and each.opcode in (Opcode.BINARY, Opcode.CONT):
                payload += each.data
            elif isinstance(each, Frame) and each.opcode is Opcode.TEXT:
                websocket.fail(CloseCode.UNSUPPORTED_DATA, "MQTT is binary")  # [MQTT-6.0.0-1]
        events = super().receive(payload, now_s) if payload else []
        if websocket.handshake_exc is not None:
            events += self.broke(f"no websocket: {websocket.handshake_exc}")
        elif websocket.state in (State.CLOSING, State.CLOSED):
            events += self.broke("the broker closed the websocket")
        return events

    def take_outbox(self, now_s: float) -> bytes:
        """Return the request for a websocket, then frames; packets wait until it is open."""
        websocket = self._websocket
        if not self._has_asked:
            self._has_asked = True
            websocket.send_request(websocket.connect())
        elif websocket.state is State.OPEN:
            data = super().take_outbox(now_s)
            if data:
                websocket.send_binary(data)
            if self.is_over():
                websocket.send_close(CloseCode.NORMAL_CLOSURE)
        return b"".join(websocket.data_to_send())
