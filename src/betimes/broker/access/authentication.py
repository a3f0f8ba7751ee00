"""Who may come in, and what may they do here?"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.broker.access.acl import AccessList, Rights
from betimes.broker.access.passwords import PasswordFile


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """A password file and an access list, either of which may be missing.

    Without a password file only anonymous clients come in, if that is allowed; a name they give proves
    nothing and gives no rights. Without an access list everybody inside may do everything.
    """

    anonymous: bool = False
    passwords: PasswordFile | None = None
    access: AccessList | None = None
    discreet: bool = False  # refuse a subscription without saying why

    def admits(self, user: str | None, password: bytes | None) -> bool | None:
        """Say whether this is who it says; None where finding out takes long (then `prove`)."""
        if user is None or self.passwords is None:
            return self.anonymous
        if password is None:
            return False
        return None if self.passwords.needs_work(user, password) else True

    def prove(self, user: str | None, password: bytes | None) -> bool:
        """Find out whether this is who it says, however long it takes."""
        if user is None or password is None or self.passwords is None:
            return False
        return self.passwords.verify(user, password)

    def proven_user(self, claimed: str | None) -> str | None:
        """Return who a client that was let in counts as: a name without a password is nobody's."""
        return claimed if self.passwords is not None else None

    def rights(self, user: str | None, client_id: str) -> Rights | None:
        """Return what a client may do; None: everything."""
        return None if self.access is None else self.access.rights(user, client_id)
