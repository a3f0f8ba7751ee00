"""MQTT in websocket frames (MQTT 5, section 6).

Frames and handshake are those of the package `websockets`, without its I/O. A packet may span frames and a
frame may hold several packets, so what frames carry goes on as if it had come from a bare socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import Event, State
from websockets.server import ServerProtocol
from websockets.typing import Subprotocol

from betimes.broker.delivery.flow import Pause
from betimes.broker.net.socket_line import TRANSPORT_BYTES_ENDURED, LineOwner, SocketLine
from betimes.mqtt.codec import CONNECT_BYTES_MAX

SUBPROTOCOL = Subprotocol("mqtt")
PATHS = ("/mqtt", "/")  # the first is what most clients ask for, the second what they do when told nothing
HANDSHAKE_BYTES_MAX = 16 * 1024


class WebsocketLine(SocketLine):
    """One accepted socket, with MQTT in websocket frames on it."""

    def __init__(self, listener: LineOwner) -> None:
        super().__init__(listener)
        # A frame is kept until it is whole: before CONNECT, no more than a CONNECT may have.
        self._websocket = ServerProtocol(subprotocols=[SUBPROTOCOL], max_size=(None, CONNECT_BYTES_MAX))
        self._handshake_bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen to a client."""
        super().connection_made(transport)
        self.write = self._write_message

    def data_received(self, data: bytes) -> None:
        """Take in what came: the handshake, then frames."""
        websocket = self._websocket
        if self.connection is None or websocket.eof_sent:
            return
        if websocket.state is State.CONNECTING:
            self._shake_hands(data)
        else:
            websocket.receive_data(data)
            self._take(websocket.events_received())
            if self.connection.session is not None:
                websocket.max_fragment_size = self._listener.handlers.hub.limits.packet_bytes_max
        self._write_frames()

    def _shake_hands(self, data: bytes) -> None:
        """Answer the HTTP request that asks for a websocket, once it is all there."""
        websocket = self._websocket
        self._handshake_bytes += len(data)
        if self._handshake_bytes > HANDSHAKE_BYTES_MAX:
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            websocket.send_response(websocket.reject(status, f"at most {HANDSHAKE_BYTES_MAX} bytes\n"))
            return
        websocket.receive_data(data)
        events = websocket.events_received()
        if not events or websocket.eof_sent:  # not all there yet; or no HTTP at all
            return
        request, *frames = events
        assert isinstance(request, Request), "a handshake begins with a request"
        if frames:  # before they were asked for
            response = websocket.reject(HTTPStatus.BAD_REQUEST, "frames come after the handshake\n")
        elif request.path.partition("?")[0] not in PATHS:
            response = websocket.reject(HTTPStatus.NOT_FOUND, f"MQTT is at {PATHS[0]}\n")
        else:
            response = websocket.accept(request)
        websocket.send_response(response)

    def _take(self, frames: Sequence[Event]) -> None:
        for frame in frames:
            assert isinstance(frame, Frame), "a request comes only once"
            if frame.opcode is Opcode.TEXT:
                self._websocket.fail(CloseCode.UNSUPPORTED_DATA, "MQTT is binary")  # [MQTT-6.0.0-1]
                return
            if frame.opcode in (Opcode.BINARY, Opcode.CONT):
                self.take_in(bytes(frame.data))

    def _write_message(self, data: bytes) -> None:
        if self._websocket.state is State.OPEN:
            self._websocket.send_binary(data)
            self._write_frames()

    def _write_frames(self) -> None:
        """Write what the websocket has to say; nothing stands for the end."""
        assert self.transport is not None, "nothing is said before the connection is made"
        for data in self._websocket.data_to_send():
            if data:
                self.transport.write(data)
            else:
                self.hang_up()
                self._end_writing()
        if (
            self.transport.get_write_buffer_size() > TRANSPORT_BYTES_ENDURED
        ):  # pongs that the client does not read
            self.pause(Pause.UNREAD_ANSWERS)

    def _say_goodbye(self) -> None:
        assert self.transport is not None, "nothing ends before it has begun"
        websocket = self._websocket
        if websocket.state is State.CONNECTING and not websocket.eof_sent:
            self.transport.abort()  # no answer was given yet
            return
        if websocket.state is State.OPEN:
            websocket.send_close(CloseCode.NORMAL_CLOSURE)
        self._write_frames()
        self._read_to_the_end()  # the other side's goodbye, after which comes the end
