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
