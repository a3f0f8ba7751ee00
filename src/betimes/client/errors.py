"""What can go wrong between a program and its broker?"""

from __future__ import annotations

from betimes.model.errors import BetimesError


class UnreachableError(BetimesError):
    """The broker does not answer."""


class ConnectionLostError(UnreachableError):
    """The broker answered, and then the connection broke."""


class RefusedError(BetimesError):
    """The broker answered no: its reason code, what that is called, and its own words if it had any.

    Where that is not definite, as the broker says, the same may be had later.
    """

    def __init__(
        self, what: str, code: int, meaning: str, reason: str = "", is_definite: bool = True
    ) -> None:
        self.what = what
        self.is_definite = is_definite
        self.code = code
        self.meaning = meaning
        self.reason = reason
        why = self.why
        said = f"\n{why}" if "\n" in why else f": {why}" if why else ""
        super().__init__(f"{what}: the broker refuses (0x{code:02x}, {meaning}){said}")

    @property
    def why(self) -> str:
        """Return the broker's words without what they are about, which is named anyway.

        >>> RefusedError("cars", 0x97, "Quota exceeded", "cars: refused: no bandwidth; 54KB/s would fit").why
        'no bandwidth; 54KB/s would fit'
        """
        return self.reason.removeprefix(f"{self.what}: ").removeprefix("refused: ")

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int, str, str, bool]]:
        """Keep the facts when an error crosses to another process."""
        return type(self), (self.what, self.code, self.meaning, self.reason, self.is_definite)


class LoginRefusedError(RefusedError):
    """The broker does not let us in."""


class SubscriptionRefusedError(RefusedError):
    """The broker does not take a subscription."""


class PublicationRefusedError(RefusedError):
    """The broker does not take a message."""


# What the standard calls the reason codes that reject something [2.4].
_MEANINGS = {
    0x80: "Unspecified error",
    0x81: "Malformed packet",
    0x82: "Protocol error",
    0x83: "Implementation specific error",
    0x84: "Unsupported protocol version",
    0x85: "Client identifier not valid",
    0x86: "Bad user name or password",
    0x87: "Not authorized",
    0x88: "Server unavailable",
    0x89: "Server busy",
    0x8A: "Banned",
    0x8B: "Server shutting down",
    0x8C: "Bad authentication method",
    0x8D: "Keep alive timeout",
    0x8E: "Session taken over",
    0x8F: "Topic filter invalid",
    0x90: "Topic name invalid",
    0x91: "Packet identifier in use",
    0x92: "Packet identifier not found",
    0x93: "Receive maximum exceeded",
    0x94: "Topic alias invalid",
    0x95: "Packet too large",
    0x96: "Message rate too high",
    0x97: "Quota exceeded",
    0x98: "Administrative action",
    0x99: "Payload format invalid",
    0x9A: "Retain not supported",
    0x9B: "QoS not supported",
    0x9C: "Use another server",
    0x9D: "Server moved",
    0x9E: "Shared subscription not supported",
    0x9F: "Connection rate exceeded",
    0xA0: "Maximum connect time",
    0xA1: "Subscription identifiers not supported",
    0xA2: "Wildcard subscription not supported",
}


def meaning(code: int) -> str:
    """Return what the standard calls a reason code.

    >>> meaning(0x87), meaning(0)
    ('Not authorized', 'Reason code 0x00')
    """
    return _MEANINGS.get(code, f"Reason code 0x{code:02x}")
