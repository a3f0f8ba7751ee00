"""Who may log in? Users and their passwords, in a file that brokers read: `betimes passwd`."""

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
from betimes.terminal.terminal import JsonOption, print_json, results

EXAMPLES = """\
[bold]Examples[/bold]

betimes passwd broker.passwords ann

betimes passwd broker.passwords sensor-7 --password-stdin < sensor-7.secret

betimes passwd broker.passwords ann --delete
"""


def passwd_command(
    file: Annotated[Path, typer.Argument(help="The password file; made if there is none.", metavar="FILE")],
    user: Annotated[str, typer.Argument(help="The user's name.", metavar="USER")],
    delete: Annotated[bool, typer.Option("--delete", help="Take the user out of the file.")] = False,
    password_stdin: Annotated[
        bool,
        typer.Option("--password-stdin", help="Read the password from standard input instead of asking."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Give a user a password, change it, or take the user out.

    You are asked for the password twice, and it is not shown. The file keeps a salted hash of it (scrypt) in
    a line of the user's own; all other lines stay as they are. A new file can be read by you alone. It is
    replaced in one step, so that a broker never reads half of it.
    """
    path, there = _found(file)
    if delete:
        if password_stdin:
            raise BetimesError("--delete takes no password: leave out --password-stdin")
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
        results().print(f"{file}: {user} {done}, {count} in all", markup=False, soft_wrap=True)


def replace_file(path: Path, text: str) -> None:
    """Write a file in one step: a reader sees the old one or the new one, whole.

    A new file is for its owner alone; one that is replaced keeps its mode and, if that is allowed, its owner.
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
    """Return the file behind any links, for it is replaced and not the link, and whether there is one."""
    try:
        path = file.resolve()
        return path, path.exists()
    except OSError as error:
        raise BetimesError(f"{file}: cannot be read ({error.strerror})") from None
    except RuntimeError:  # what pathlib makes of links in a circle
        raise BetimesError(f"{file}: is a link that leads back to itself") from None


def _password_asked(user: str) -> bytes:
    if sys.stdin is None or not sys.stdin.isatty():
        hint = "write --password-stdin to hand it over by standard input"
        raise BetimesError(f"there is no terminal to ask for the password\nhint: {hint}")
    try:
        password = getpass.getpass(f"password for {user}: ").encode()
        check_password(password)
        again = getpass.getpass("the same once more: ").encode()
    except EOFError:
        raise BetimesError("no password was given") from None
    except UnicodeError:
        raise BetimesError("the password is not text in this terminal's encoding") from None
    if password != again:
        raise BetimesError("the two passwords differ; nothing was changed")
    return password


def _password_from_stdin() -> bytes:
    if sys.stdin is None:
        raise BetimesError("--password-stdin: standard input is closed")
    password = sys.stdin.buffer.read(PASSWORD_BYTES_MAX + 3)  # and a line end, and one byte too many
    password = password.removesuffix(b"\n").removesuffix(b"\r")
    if b"\n" in password:
        raise BetimesError("--password-stdin: one line was expected, and there are more")
    check_password(password)
    return password
