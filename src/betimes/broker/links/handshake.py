"""The handshake of a link: both neighbours prove that they know the network's secret, and neither sends it.

    dialler   CONNECT  its nonce and identity
    acceptor  AUTH     its nonce and identity, and its proof
    dialler   AUTH     its proof, once it has verified the acceptor's
    acceptor  CONNACK  once it has verified the dialler's: the link is up

A proof is an HMAC-SHA-256 of all that both sides said, of the side that proves, and of the TLS connection if
there is one. So a proof is good for one connection and one side: it can be neither replayed nor reflected,
and with TLS not relayed. Without TLS, an attacker on the way can relay a handshake and change what follows.

A stranger that connects is sent a proof, by which it can try out secrets that it guesses. Each guess costs
it one scrypt, and a random secret cannot be guessed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

METHOD = "betimes-link"  # the authentication method of CONNECT, AUTH and CONNACK
NONCE_BYTES = 32

_SALT = b"betimes link"
_SCRYPT_COST, _SCRYPT_BLOCKS = 2**14, 8  # 45 ms and 16 MB for a guess
_KEYS_REMEMBERED = 16  # a process that runs many brokers derives each key once

Nonce = Callable[[], bytes]


class Side(StrEnum):
    """The two sides of a link."""

    DIALLER = "dialler"
    ACCEPTOR = "acceptor"


class Hello(NamedTuple):
    """What one side says before it has proven anything."""

    nonce: bytes
    identity: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, nonce: bytes, identity: Sequence[tuple[str, str]]) -> Hello:
        """Return what was said, with the user properties as the packet has them."""
        return cls(nonce, tuple((name, value) for name, value in identity))


class Transcript(NamedTuple):
    """All that both sides said, and which TLS connection it went over: empty if none."""

    dialler: Hello
    acceptor: Hello
    binding: bytes


class LinkSecret:
    """The secret of a network, as its links use it."""

    def __init__(self, secret: str, nonce: Nonce) -> None:
        self._key = _derived_key(secret)
        self.nonce = nonce  # makes a new one

    def proof(self, side: Side, transcript: Transcript) -> bytes:
        """Return the proof of one side that it knows the secret."""
        said = [[each.nonce.hex(), each.identity] for each in (transcript.dialler, transcript.acceptor)]
        text = json.dumps([METHOD, side, *said, transcript.binding.hex()])
        return hmac.digest(self._key, text.encode(), "sha256")

    def is_proof(self, proof: bytes, side: Side, transcript: Transcript) -> bool:
        """Tell whether this is the proof of that side."""
        return hmac.compare_digest(proof, self.proof(side, transcript))


def random_nonce() -> bytes:
    """Return a nonce that no attacker can foresee."""
    return secrets.token_bytes(NONCE_BYTES)


@lru_cache(_KEYS_REMEMBERED)
def _derived_key(secret: str) -> bytes:
    return hashlib.scrypt(secret.encode(), salt=_SALT, n=_SCRYPT_COST, r=_SCRYPT_BLOCKS, p=1)
