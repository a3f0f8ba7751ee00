"""Authentication and authorisation of clients: passwords, access control list and accounts, together."""

from __future__ import annotations

from dataclasses import dataclass, field

from betimes.broker.access.acl import AccessList, Rights
from betimes.broker.access.passwords import PasswordFile
from betimes.model.account_settings import AccountSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControl:
    """A password file and an access list, either of which may be missing.

    Without a password file only anonymous clients may connect, if `anonymous` allows it; a user name that
    they state proves nothing and gives no rights. Without an access list each connected client may do
    everything.
    """

    anonymous: bool = False
    passwords: PasswordFile | None = None
    access: AccessList | None = None
    accounts: AccountSettings = field(default_factory=AccountSettings)
    discreet: bool = False  # refuse a subscription without saying why

    def admits(self, user: str | None, password: bytes | None) -> bool | None:
        """Tell whether a client may connect; None if the check is slow, then call `prove` in a thread."""
        if user is None or self.passwords is None:
            return self.anonymous
        if password is None:
            return False
        return None if self.passwords.needs_work(user, password) else True

    def prove(self, user: str | None, password: bytes | None) -> bool:
        """Tell whether the password is right; this may take tens of milliseconds."""
        if user is None or password is None or self.passwords is None:
            return False
        return self.passwords.verify(user, password)

    def proven_user(self, claimed: str | None) -> str | None:
        """Return the user name of a connected client; None if it was not proven by a password."""
        return claimed if self.passwords is not None else None

    def rights(self, user: str | None, client_id: str) -> Rights | None:
        """Return the rights of a client; None: it may do everything."""
        return None if self.access is None else self.access.rights(user, client_id)
