"""How are very many messages read, or sent, without an event loop? Packets in and packets out, and we wait.

For tasks on Spark: one connection, one thing at a time, as fast as the codec. Programs that do something
else meanwhile use `betimes.connect`.
"""

from __future__ import annotations

import secrets
import socket
import ssl
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import mqtt5

from betimes.client.addresses import Address
from betimes.client.errors import ConnectionLostError, LoginRefusedError, UnreachableError
from betimes.client.tls import tls_for

READ_BYTES = 256 * 1024
FAILED = 0x80  # reason codes from here on say that something was refused


class _Transport(Protocol):
    def sendall(self, data: bytes) -> None: ...
    def recv(self, size: int) -> bytes: ...
    def close(self) -> None: ...


class _Websocket:
    """Websocket frames as a stream of bytes."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, timeout_s: float) -> None:
        from websockets.sync.client import connect
        from websockets.typing import Subprotocol

        host = f"[{address.host}]" if ":" in address.host else address.host
        self._timeout_s = timeout_s
        self._open = ExitStack()
        self._frames = self._open.enter_context(
            connect(
                f"{address.scheme}://{host}:{address.port}{address.path}",
                subprotocols=[Subprotocol("mqtt")],
                ssl=tls,
                open_timeout=timeout_s,
                compression=None,
                max_size=None,
            )
        )

    def sendall(self, data: bytes) -> None:
        self._frames.send(data)

    def recv(self, size: int) -> bytes:  # noqa: ARG002 -- a frame comes whole
        frame = self._frames.recv(self._timeout_s)
        return frame if isinstance(frame, bytes) else frame.encode()

    def close(self) -> None:
        self._open.close()


class DirectLine:
    """One connection to a broker, open from the start, under a name that nobody else has."""

    def __init__(self, address: Address, *, ca: str | Path | None = None, timeout_s: float = 10.0) -> None:
        from websockets.exceptions import WebSocketException

        self._address = address
        self._timeout_s = timeout_s
        self._lost = (OSError, WebSocketException)
        self._rest = b""
        tls = tls_for(address, ca)
        try:
            self._transport = self._opened(tls)
        except self._lost as error:
            raise UnreachableError(f"{address}: cannot be reached ({error})") from None
        self.receive_max = 65_535  # messages of QoS 1 that the broker takes at once
        self.packet_bytes_max = 256 * 1024 * 1024
        try:
            self._log_in()
        except BaseException:
            self._transport.close()
            raise

    def __enter__(self) -> DirectLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(self, *packets: mqtt5.Packet) -> None:
        """Send packets."""
        self.send_bytes(b"".join(each.write() for each in packets))

    def send_bytes(self, data: bytes) -> None:
        """Send what was written as packets before."""
        try:
            self._transport.sendall(data)
        except self._lost as error:
            raise self._broke(error) from None

    def receive(self) -> list[Any]:
        """Wait until something comes, and return the packets: one at least."""
        packets: list[Any] = []
        while not packets:
            try:
                data = self._transport.recv(READ_BYTES)
            except TimeoutError:
                raise self._broke(f"no answer within {self._timeout_s:g} s") from None
            except self._lost as error:
                raise self._broke(error) from None
            if not data:
                raise self._broke("the broker hung up")
            packets = self._whole_packets(data)
        return packets

    def close(self) -> None:
        """Say goodbye, if anybody is there."""
        try:
            self._transport.sendall(mqtt5.DisconnectPacket().write())
        except self._lost:
            pass  # there is nobody any more
        finally:
            self._transport.close()

    def _whole_packets(self, data: bytes) -> list[Any]:
        view = memoryview(self._rest + data if self._rest else data)
        at, packets, read = 0, [], mqtt5.read
        try:
            while at < len(view):
                packet, size = read(view[at:])
                packets.append(packet)
                at += size
        except IndexError:
            pass  # the rest of it is still to come
        except ValueError as error:
            raise self._broke(f"this is not MQTT: {error}") from None
        self._rest = bytes(view[at:])
        if packets and isinstance(packets[-1], mqtt5.DisconnectPacket):
            gone = packets[-1]
            raise self._broke(gone.reason_str or str(gone.reason_code))
        return packets

    def _opened(self, tls: ssl.SSLContext | None) -> _Transport:
        address = self._address
        if address.has_websockets:
            return _Websocket(address, tls, self._timeout_s)
        bare = socket.create_connection((address.host, address.port), timeout=self._timeout_s)
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bare if tls is None else tls.wrap_socket(bare, server_hostname=address.host)

    def _log_in(self) -> None:
        address = self._address
        client_id = f"{address.client_id or 'betimes-direct'}-{secrets.token_hex(8)}"
        password = None if address.password is None else address.password.encode()
        self.send(mqtt5.ConnectPacket(client_id, clean_start=True, username=address.user, password=password))
        answer = first_of(self.receive(), mqtt5.ConnAckPacket, str(address))
        if answer.reason_code.value >= FAILED:
            code = answer.reason_code
            raise LoginRefusedError(str(address), code.value, str(code), answer.reason_str or "")
        self.receive_max = answer.receive_max or self.receive_max
        self.packet_bytes_max = answer.max_packet_size or self.packet_bytes_max

    def _broke(self, why: object) -> ConnectionLostError:
        return ConnectionLostError(f"{self._address}: the connection broke ({why})")


def first_of(packets: Sequence[Any], kind: type[Any], address: str) -> Any:
    """Return the first packet, which must be of a kind."""
    if not isinstance(packets[0], kind):
        came, meant = type(packets[0]).__name__, kind.__name__
        raise ConnectionLostError(f"{address}: the broker sent {came} where {meant} was due")
    return packets[0]
