"""How is a file that the user named read, or refused?"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from betimes.language.suggestions import WORDS_COMPARED_MAX, did_you_mean
from betimes.model.errors import BetimesError

BYTES_MAX = 64 * 1024 * 1024  # a scenario is text a person wrote


def read_text_file(path: Path, made_by: str = "") -> str:
    """Return the text of a file; a BetimesError that names it where it cannot be had, with what makes one."""
    try:
        # Some editors put a mark in front.
        return _as_lines(read_binary_file(path, BYTES_MAX, made_by).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BetimesError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def read_binary_file(path: Path, bytes_max: int, made_by: str = "") -> bytes:
    """Return what is in a file; a BetimesError that names it where it cannot be had."""
    try:
        if path.is_dir():
            hint = "name a file in it"
            raise BetimesError(f"{path}: is a directory, and a file was expected\nhint: {hint}")
        if not path.is_file() and path.exists():
            raise BetimesError(f"{path}: is no ordinary file")
        if path.stat().st_size > bytes_max:
            raise BetimesError(f"{path}: is too large: more than {bytes_max // 2**20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        hint = made_by or _what_is_there(path)
        raise BetimesError(f"{path}: there is no such file\nhint: {hint}") from None
    except OSError as error:
        raise BetimesError(f"{path}: cannot be read ({error.strerror})") from None


def _what_is_there(path: Path) -> str:
    """Return a hint on what may have been meant by a file that is not there: one like it beside it."""
    folder = path.absolute().parent
    try:
        names = [each.name for each in islice(folder.iterdir(), WORDS_COMPARED_MAX) if each.is_file()]
    except OSError:
        return f"there is no folder {folder} either"
    alike = [name for name in names if Path(name).suffix == path.suffix or not path.suffix]
    kind = f"{path.suffix} files" if path.suffix else "files"
    return did_you_mean(path.name, alike, f"{kind} in {folder}")


def _as_lines(text: str) -> str:
    """Return the text with its lines ended as Python ends them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
