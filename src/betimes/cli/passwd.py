"""`betimes passwd`: edit a password file of users and salted hashes."""

from __future__ import annotations

import getpass
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from betimes.broker.access.passwords import PASSWORD_BYTES_MAX, PasswordFile, check_password, check_user_name
from betimes.model.errors import BetimesError
from betimes.terminal.files import read_text_file
from betimes.terminal.terminal import JsonOption, examples, print_json, results

EXAMPLES = examples(
    "betimes passwd broker.passwords ann",
    "betimes passwd broker.passwords sensor-7 --password-stdin < sensor-7.secret",
    "betimes passwd broker.passwords ann --delete",
)


def passwd_command(
    file: Annotated[
        Path, typer.Argument(help="The password file; created if it does not exist.", metavar="FILE")
    ],
    user: Annotated[str, typer.Argument(help="The user's name.", metavar="USER")],
    delete: Annotated[bool, typer.Option("--delete", help="Delete the user from the file.")] = False,
    password_stdin: Annotated[
        bool,
        typer.Option("--password-stdin", help="Read the password from standard input instead of asking."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Add a user to a password file, change the password, or delete the user.

    Brokers read this file with --passwords. The command prompts twice for the password and does not show it.
    The file has a line with a salted hash (scrypt) for each user; other lines stay as they are. Only you can
    read a new file. The command replaces the file in one step, so that a broker never reads half of it.
    """
    path, there = _found(file)
    if delete:
        if password_stdin:
            raise BetimesError("--delete needs no password: leave out --password-stdin")
        changed = PasswordFile.read(read_text_file(path), str(file)).without_user(user)
        done = "deleted"
    else:
        check_user_name(user)
        users = PasswordFile.read(read_text_file(path), str(file)) if there else PasswordFile()
        changed = users.with_user(user, _password_from_stdin() if password_stdin else _password_asked(user))
        done = "changed" if user in users else "added"
    replace_file(path, changed.text())
    if as_json:
        print_json({"file": str(file), "user": user, "done": done, "users": len(changed)})
    else:
        count = "1 user" if len(changed) == 1 else f"{len(changed):,} users"
        results().print(f"{file}: {user} {done}, {count} in total", markup=False, soft_wrap=True)


def replace_file(path: Path, text: str) -> None:
    """Replace a file in one step: a reader sees either the old or the new contents.

    Only its owner can read a new file; an old one keeps its mode and, if the system allows it, its owner.
    """
    try:
        number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(number, "w", encoding="utf-8", newline="\n") as writing:
                if path.exists():
                    old = path.stat()
                    with suppress(PermissionError):
                        os.fchown(number, old.st_uid, old.st_gid)
                    os.fchmod(number, old.st_mode & 0o777)
                writing.write(text)
                writing.flush()
                os.fsync(number)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BetimesError(f"{path}: cannot be written ({error.strerror})") from None


def _found(file: Path) -> tuple[Path, bool]:
    """Return the target of any symbolic links, which is what is replaced, and whether it exists."""
    try:
        path = file.resolve()
        return path, path.exists()
    except OSError as error:
        raise BetimesError(f"{file}: cannot be read ({error.strerror})") from None
    except RuntimeError:  # pathlib's error for circular links
        raise BetimesError(f"{file}: is a symbolic link to itself") from None


def _password_asked(user: str) -> bytes:
    if sys.stdin is None or not sys.stdin.isatty():
        hint = "pass --password-stdin and send the password to standard input"
        raise BetimesError(f"there is no terminal to prompt for the password\nhint: {hint}")
    try:
        password = getpass.getpass(f"password for {user}: ").encode()
        check_password(password)
        again = getpass.getpass("repeat the password: ").encode()
    except EOFError:
        raise BetimesError("the input ended before the password") from None
    except UnicodeError:
        raise BetimesError("the password is not text in this terminal's encoding") from None
    if password != again:
        raise BetimesError("the two passwords differ; the file is unchanged")
    return password


def _password_from_stdin() -> bytes:
    if sys.stdin is None:
        raise BetimesError("--password-stdin: standard input is closed")
    password = sys.stdin.buffer.read(PASSWORD_BYTES_MAX + 3)  # plus a line end, plus one byte too many
    password = password.removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in password:
        raise BetimesError("--password-stdin: standard input has more than one line")
    check_password(password)
    return password
