"""The files that a broker's settings name: passwords, access list, secrets. Read when a server is made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import PasswordFile
from betimes.language.files.accounts_file import read_accounts
from betimes.language.files.server_file import SECRET_LENGTH_MIN
from betimes.model.account_settings import AccountSettings
from betimes.model.errors import BetimesError, SettingError
from betimes.model.server_settings import ServerSettings

Read = Callable[[Path, str], str]  # the text of a file; the second is a hint where there is none


def read_file(path: Path, made_by: str = "") -> str:
    """Return the text of a file, or raise a BetimesError that names it."""
    try:
        return path.read_text("utf-8-sig")
    except FileNotFoundError:
        raise BetimesError(f"{path}: no such file\nhint: {made_by or 'check the path'}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise BetimesError(f"{path}: cannot be read ({error})") from None


def open_access(settings: ServerSettings, read: Read = read_file) -> AccessControl:
    """Return the access control that the settings and their files describe."""
    users = allowed = None
    if settings.passwords is not None:
        made_by = f"betimes passwd {settings.passwords} USER makes one"
        users = PasswordFile.read(read(Path(settings.passwords), made_by), settings.passwords)
    if settings.access is not None:
        allowed = AccessList.read(read(Path(settings.access), ""), settings.access)
    accounts = AccountSettings()
    if settings.accounts is not None:
        accounts = read_accounts(read(Path(settings.accounts), ""), settings.accounts)
    return AccessControl(
        anonymous=settings.anonymous,
        passwords=users,
        access=allowed,
        accounts=accounts,
        discreet=settings.discreet,
    )


def secret_in(path: Path, setting: str, read: Read = read_file) -> str:
    """Return the secret in the file that a setting names."""
    secret = read(path, "").strip()
    if len(secret) < SECRET_LENGTH_MIN:
        hint = f"write at least {SECRET_LENGTH_MIN} letters into it: openssl rand -hex 16 > {path}"
        raise SettingError(setting, str(path), "the secret is too short", hint)
    return secret


def with_secrets(settings: ServerSettings) -> ServerSettings:
    """Return settings with the secrets of the files that they name, where they are not read yet."""
    control, network = settings.control_secret_file, settings.network
    if control is not None and not settings.control_secret:
        settings = replace(settings, control_secret=secret_in(Path(control), "control_secret_file"))
    if network is not None and not network.secret:
        if network.secret_file is None:
            hint = "brokers of one network share a secret: NetworkSettings(secret=…)"
            raise SettingError("network.secret", "", "there is none", hint)
        secret = secret_in(Path(network.secret_file), "network.secret_file")
        settings = replace(settings, network=replace(network, secret=secret))
    return settings
