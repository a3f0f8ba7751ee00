"""The password file: users and scrypt hashes of their passwords, read, checked and changed.

It has one line for each user, `name:$scrypt$ln=14,r=8,p=1$SALT$HASH`, salt and hash in base64 without
padding; empty lines and lines that begin with # are kept. scrypt takes tens of milliseconds on purpose, also
for a user that does not exist: where `needs_work` is true, call `verify` in a thread. A password that was
found right is remembered, as a keyed hash, until the file is read again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from betimes.language.files.table_reader import Mistakes
from betimes.language.suggestions import did_you_mean, quoted
from betimes.model.errors import BetimesError, SettingError

NAME_LENGTH_MAX = 200
PASSWORD_BYTES_MAX = 65_535  # the most that MQTT's length field of two bytes can state
USERS_MAX = 1_000_000

_SALT_BYTES = 16
_HASH_BYTES = 32
_MEMORY_BYTES_MAX = 256 * 2**20  # for one check: a line that asks for more is a mistake
_P_MAX = 16
_HASH = re.compile(
    r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{1,99})\$([A-Za-z0-9+/]{1,99})", re.ASCII
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The work of a check: scrypt's parameters (RFC 7914), N as its logarithm."""

    ln: int = 14
    r: int = 8
    p: int = 1

    def memory_bytes(self) -> int:
        """Return the memory that a check needs."""
        return 128 * self.r * ((1 << self.ln) + self.p + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordHash:
    """The salted hash of a password."""

    cost: Cost
    salt: bytes
    digest: bytes

    @classmethod
    def of(cls, password: bytes, cost: Cost) -> PasswordHash:
        """Return the hash of a new password, with a new salt."""
        salt = secrets.token_bytes(_SALT_BYTES)
        return cls(cost=cost, salt=salt, digest=_scrypt(password, salt, cost, _HASH_BYTES))

    def fits(self, password: bytes) -> bool:
        """Tell whether the password is right: slow, and as slow for a wrong one."""
        digest = _scrypt(password, self.salt, self.cost, len(self.digest))
        return hmac.compare_digest(digest, self.digest)

    def __str__(self) -> str:
        cost = f"ln={self.cost.ln},r={self.cost.r},p={self.cost.p}"
        return f"$scrypt${cost}${_base64(self.salt)}${_base64(self.digest)}"


class PasswordFile:
    """The users and the hashes of their passwords. It is immutable but for its cache of right passwords."""

    def __init__(self, lines: tuple[str, ...] = (), users: Mapping[str, PasswordHash] | None = None) -> None:
        self._lines = lines
        self._users = dict(users or {})
        self._key = secrets.token_bytes(32)
        self._right: dict[str, bytes] = {}  # by user: no more of them than users
        # The password of an unknown user is checked against this, to take as long as that of a known one.
        cost = next((each.cost for each in self._users.values()), Cost())
        self._unknown_user = PasswordHash(cost=cost, salt=bytes(_SALT_BYTES), digest=bytes(_HASH_BYTES))

    @classmethod
    def read(cls, text: str, place: str) -> PasswordFile:
        """Return the users in a text; `place` names the file in messages. Reports all mistakes at once."""
        mistakes = Mistakes()
        users: dict[str, PasswordHash] = {}
        lines = [line.removesuffix("\r") for line in text.split("\n")]
        if not lines[-1]:
            lines.pop()
        for number, line in enumerate(lines, 1):
            if _is_user_line(line):
                _read_line(line, f"{place}:{number}", users, mistakes)
        if len(users) > USERS_MAX:
            mistakes.add(place, f"there are {len(users):,} users, and {USERS_MAX:,} are allowed")
        mistakes.raise_if_any(place)
        return cls(tuple(lines), users)

    def __len__(self) -> int:
        """Return how many users there are."""
        return len(self._users)

    def __contains__(self, name: str) -> bool:
        return name in self._users

    def needs_work(self, name: str, password: bytes) -> bool:
        """Tell whether `verify` would be slow: this password was not found right before."""
        right = self._right.get(name)
        return right is None or not hmac.compare_digest(right, self._quick_hash(name, password))

    def verify(self, name: str, password: bytes) -> bool:
        """Tell whether this is the user's password. May be called from any thread."""
        if not self.needs_work(name, password):
            return True
        kept = self._users.get(name)
        fits = (kept or self._unknown_user).fits(password)
        if kept is None or not fits:
            return False
        self._right[name] = self._quick_hash(name, password)
        return True

    def with_user(self, name: str, password: bytes, cost: Cost | None = None) -> PasswordFile:
        """Return the file with this user, new or with a new password."""
        check_user_name(name)
        check_password(password)
        kept = PasswordHash.of(password, cost or Cost())
        line = f"{name}:{kept}"
        if name in self._users:
            lines = tuple(line if _name_in(old) == name else old for old in self._lines)
        else:
            lines = (*self._lines, line)
        return PasswordFile(lines, {**self._users, name: kept})

    def without_user(self, name: str) -> PasswordFile:
        """Return the file without this user, which must be in it."""
        if name not in self._users:
            hint = did_you_mean(name, self._users, "users")
            raise BetimesError(f"there is no user {quoted(name)}\nhint: {hint}")
        lines = tuple(line for line in self._lines if _name_in(line) != name)
        return PasswordFile(lines, {user: kept for user, kept in self._users.items() if user != name})

    def text(self) -> str:
        """Return the content of the file."""
        return "".join(f"{line}\n" for line in self._lines)

    def _quick_hash(self, name: str, password: bytes) -> bytes:
        # The name's length keeps "ab" + "c" apart from "a" + "bc".
        encoded = name.encode("utf-8", "surrogatepass")
        return hmac.digest(self._key, b"%d:%b%b" % (len(encoded), encoded, password), "sha256")


def check_user_name(name: str) -> None:
    """Raise a SettingError if a name cannot stand in a password file."""
    problem = _name_problem(name)
    if problem:
        hint = "letters, digits, and most other signs will do"
        raise SettingError("user", name[:NAME_LENGTH_MAX], problem, hint)


def check_password(password: bytes) -> None:
    """Raise a BetimesError, which does not show the password, if it is empty or too long."""
    if not password:
        raise BetimesError("a password cannot be empty")
    if len(password) > PASSWORD_BYTES_MAX:
        raise BetimesError(f"a password has at most {PASSWORD_BYTES_MAX:,} bytes, and this has more")


def _name_problem(name: str) -> str | None:
    if not name:
        return "a user's name cannot be empty"
    if len(name) > NAME_LENGTH_MAX:
        return f"a user's name has at most {NAME_LENGTH_MAX} letters"
    if ":" in name:
        return "a user's name has no colon in it: the colon ends it in a password file"
    if name.startswith("#"):
        return "a user's name does not begin with #: such a line of a password file is a comment"
    if not name.isprintable():
        return "a user's name has no control characters in it"
    if name != name.strip():
        return "a user's name neither begins nor ends with a space"
    return None


def _is_user_line(line: str) -> bool:
    return bool(line.strip()) and not line.startswith("#")


def _name_in(line: str) -> str | None:
    return line.partition(":")[0] if _is_user_line(line) else None


def _read_line(line: str, place: str, users: dict[str, PasswordHash], mistakes: Mistakes) -> None:
    """Add the user of a line, or the mistake in it; the message shows nothing that may be a password."""
    name, colon, rest = line.partition(":")
    if not colon:
        mistakes.add(place, "this line has no colon", "set passwords with `betimes passwd FILE USER`")
        return
    problem = _name_problem(name)
    if problem:
        mistakes.add(place, problem)
    elif name in users:
        mistakes.add(place, f"the user {quoted(name)} is listed twice", "take one of the lines out")
    kept = _read_hash(rest)
    if isinstance(kept, PasswordHash):
        users.setdefault(name, kept)
    else:
        mistakes.add(place, kept, f"set it again with `betimes passwd FILE {quoted(name)[1:-1]}`")


def _read_hash(text: str) -> PasswordHash | str:
    """Return the hash, or what is wrong with it."""
    if text.startswith(("$6$", "$7$")):
        return "this is a hash of mosquitto_passwd, which is not read here"
    found = _HASH.fullmatch(text)
    if found is None:
        return "after the colon no hash of the form $scrypt$ln=14,r=8,p=1$SALT$HASH was found"
    ln, r, p = (int(number) for number in found.groups()[:3])
    cost = Cost(ln=ln, r=r, p=p)
    if min(ln, r, p) < 1 or p > _P_MAX or cost.memory_bytes() > _MEMORY_BYTES_MAX:
        return f"scrypt's parameters ln={ln},r={r},p={p} are outside what is allowed"
    salt, digest = (_from_base64(part) for part in found.groups()[3:])
    if salt is None or digest is None or not (8 <= len(salt) <= 64 and 16 <= len(digest) <= 64):
        return "salt or hash is cut off or damaged"
    return PasswordHash(cost=cost, salt=salt, digest=digest)


def _scrypt(password: bytes, salt: bytes, cost: Cost, length: int) -> bytes:
    memory = cost.memory_bytes() + 2**20  # a little more than the formula, or OpenSSL refuses
    return hashlib.scrypt(
        password, salt=salt, n=1 << cost.ln, r=cost.r, p=cost.p, maxmem=memory, dklen=length
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")


def _from_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        return None
