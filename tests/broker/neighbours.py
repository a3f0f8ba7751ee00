"""How do tests play a neighbour of a broker or a peer? A client that knows the handshake, or does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mqtt5
from tests.broker.talking import Client

from betimes.broker.core.hub import Hub
from betimes.broker.links.handshake import METHOD, NONCE_BYTES, Hello, LinkSecret, Side, Transcript

NONCE = b"d" * NONCE_BYTES


def counted_nonces(name: str) -> Callable[[], bytes]:
    """Return a source of nonces that are the same in each run."""
    made = iter(range(10**9))
    return lambda: f"{name} {next(made)}".encode().rjust(NONCE_BYTES, b".")


def secret(text: str = "hush", nonce: Callable[[], bytes] = lambda: NONCE) -> LinkSecret:
    return LinkSecret(text, nonce)


class DiallingNeighbour(Client):
    """A neighbour that dials a hub: its CONNECT, and its proof once there is a challenge."""

    def __init__(
        self,
        hub: Hub,
        name: str,
        identity: Sequence[tuple[str, str]],
        *,
        secret_text: str = "hush",
        proves: bool = True,
        **connect: Any,
    ) -> None:
        self.identity, self.secret = identity, secret(secret_text)
        connect = {"authentication_method": METHOD, "authentication_data": NONCE, **connect}
        super().__init__(hub, name, user_properties=list(identity), **connect)
        self.challenge = self.connack if isinstance(self.connack, mqtt5.AuthPacket) else None
        if proves and self.challenge is not None:
            self.answer(self.ask(self.proof()))

    def proof(self, side: Side = Side.DIALLER) -> mqtt5.AuthPacket:
        """Return the AUTH that proves the secret."""
        assert self.challenge is not None
        nonce = (self.challenge.authentication_data or b"")[:NONCE_BYTES]
        transcript = Transcript(
            Hello.of(NONCE, self.identity), Hello.of(nonce, self.challenge.user_properties), b""
        )
        return auth(self.secret.proof(side, transcript))

    def answer(self, packets: list[Any]) -> None:
        """Take what came back as the answer to the proof."""
        self.first = packets
        self.connack = self.first.pop(0) if self.first else None


def auth(data: bytes, identity: Sequence[tuple[str, str]] = ()) -> mqtt5.AuthPacket:
    return mqtt5.AuthPacket(
        reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION,
        authentication_method=METHOD,
        authentication_data=data,
        user_properties=list(identity),
    )
