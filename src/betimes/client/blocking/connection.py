"""A connection without an event loop and without a thread, to one broker, or to the next where one is lost.

For tasks on Spark: one thing at a time, as fast as the codec. Programs that do something else meanwhile use
`betimes.connect_sync`, or `betimes.connect`.
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import mqtt5

from betimes.client.addresses import Address
from betimes.client.broker_connection import protocol_for
from betimes.client.errors import ConnectionLostError, LoginRefusedError, UnreachableError, meaning
from betimes.client.resubscribing import BackOff
from betimes.client.settings import Place, tls_for
from betimes.mqtt.client_protocol import Cause, Ended

READ_BYTES = 256 * 1024
PAUSE_S_MAX = 2.0  # between two attempts to connect

T = TypeVar("T")


class DirectConnection:
    """One connection to a broker, open from the start, under a client id that no other client has."""

    def __init__(
        self,
        address: Address,
        *,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        timeout_s: float = 10.0,
    ) -> None:
        self._address = address
        self._timeout_s = timeout_s
        place = Place(address=address, tls=tls_for(address, ca, cert, key))
        connect = mqtt5.ConnectPacket(
            f"{address.client_id or 'betimes-direct'}-{secrets.token_hex(8)}",
            clean_start=True,
            username=address.user,
            password=None if address.password is None else address.password.encode(),
        )
        self.protocol = protocol_for(address, connect, trusts=True)  # for calls; then `flush`, or `receive`
        try:
            self._transport = open_socket(place, timeout_s)
        except (OSError, ValueError) as error:
            raise UnreachableError(f"{address}: cannot be reached ({error})") from None
        try:
            self.protocol.start(time.monotonic())
            first_of(self.receive(), mqtt5.ConnAckPacket, str(address))
        except BaseException:
            self._transport.close()
            raise

    def send(self, *packets: mqtt5.Packet) -> None:
        """Send packets as they are."""
        for each in packets:
            self.protocol.send(each)
        self.flush()

    def flush(self) -> None:
        """Send what was published and asked for."""
        try:
            data = self.protocol.take_outbox(time.monotonic())
            if data:
                self._transport.sendall(data)
        except OSError as error:
            raise self._broke(error) from None

    def receive(self) -> list[Any]:
        """Send, wait until something comes, and return the events (`ClientProtocol`): one at least."""
        self.flush()
        events: list[Any] = []
        while not events:
            try:
                data = self._transport.recv(READ_BYTES)
            except TimeoutError:
                raise self._broke(f"no answer within {self._timeout_s:g} s") from None
            except OSError as error:
                raise self._broke(error) from None
            if not data:
                raise self._broke("the broker hung up")
            events = self.protocol.receive(data, time.monotonic())
            self.flush()
        if isinstance(events[-1], Ended):
            raise self._error(events[-1])
        return events

    def close(self) -> None:
        """Say goodbye, if the broker is still there."""
        self.protocol.disconnect()
        try:
            self.flush()
        except ConnectionLostError:
            pass  # the broker is gone already
        finally:
            self._transport.close()

    def _error(self, ended: Ended) -> LoginRefusedError | ConnectionLostError:
        if ended.cause is Cause.REJECTED:
            return LoginRefusedError(str(self._address), ended.code, meaning(ended.code), ended.reason)
        if ended.cause is Cause.BAD_PACKET:
            return self._broke(f"this is not MQTT: {ended.reason}")
        return self._broke(ended.reason or meaning(ended.code))

    def _broke(self, why: object) -> ConnectionLostError:
        return ConnectionLostError(f"{self._address}: the connection broke ({why})")


class FailoverConnection:
    """A connection that is opened when it is needed, and again, elsewhere, for as long as patience lasts."""

    def __init__(
        self,
        addresses: Sequence[Address],
        *,
        ca: str | Path | None = None,
        cert: str | Path | None = None,
        key: str | Path | None = None,
        timeout_s: float = 10.0,
        patience_s: float = 0.0,
    ) -> None:
        self._addresses = addresses
        self._files = {"ca": ca, "cert": cert, "key": key}
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._place = 0
        self._line: DirectConnection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> Address:
        """Return which broker is talked to."""
        return self._addresses[self._place]

    def close(self) -> None:
        """Hang up."""
        line, self._line = self._line, None
        if line is not None:
            line.close()

    def do(self, action: Callable[[DirectConnection], T]) -> T:
        """Do something on the connection; all of it again on the next one where that is lost."""
        back_off = BackOff(time.monotonic() + self._patience_s, PAUSE_S_MAX)
        while True:
            was_open = self._line is not None
            try:
                if self._line is None:
                    self._line = DirectConnection(self.address, timeout_s=self._timeout_s, **self._files)
                return action(self._line)
            except UnreachableError:
                self.close()
                if was_open:
                    continue  # it may have been cut while nothing was asked
                self._place = (self._place + 1) % len(self._addresses)  # also for the next call
                pause_s = back_off.pause_s(time.monotonic())
                if pause_s is None:
                    raise
            time.sleep(pause_s)


def first_of(packets: Sequence[Any], kind: type[Any], address: str) -> Any:
    """Return the first packet, which must be of a kind."""
    if not isinstance(packets[0], kind):
        came, meant = type(packets[0]).__name__, kind.__name__
        raise ConnectionLostError(f"{address}: the broker sent {came} where {meant} was due")
    return packets[0]


def open_socket(place: Place, timeout_s: float) -> socket.socket:
    """Return a socket that is connected, within the time limit; what goes wrong is an OSError."""
    address = place.address
    bare = socket.create_connection((address.host, address.port), timeout=timeout_s)
    try:
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bare if place.tls is None else place.tls.wrap_socket(bare, server_hostname=address.host)
    except BaseException:
        bare.close()
        raise
