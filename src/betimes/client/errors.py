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
        said = f"\n{reason}" if "\n" in reason else f": {reason}" if reason else ""
        super().__init__(f"{what}: the broker refuses (0x{code:02x}, {meaning}){said}")

    def __reduce__(self) -> tuple[type[RefusedError], tuple[str, int, str, str, bool]]:
        """Keep the facts when an error crosses to another process."""
        return type(self), (self.what, self.code, self.meaning, self.reason, self.is_definite)


class LoginRefusedError(RefusedError):
    """The broker does not let us in."""


class SubscriptionRefusedError(RefusedError):
    """The broker does not take a subscription."""


class PublicationRefusedError(RefusedError):
    """The broker does not take a message."""
