"""Reading of files that the user named, with errors that name the file."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from betimes.language.suggestions import WORDS_COMPARED_MAX, did_you_mean
from betimes.model.errors import BetimesError

BYTES_MAX = 64 * 1024 * 1024  # these files are written by hand


def read_text_file(path: Path, made_by: str = "") -> str:
    """Return the text of a file; a BetimesError if it cannot be read, with the hint `made_by`."""
    try:
        # Some editors write a byte order mark, or other line ends than Python's.
        text = read_binary_file(path, BYTES_MAX, made_by).decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise BetimesError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def read_binary_file(path: Path, bytes_max: int, made_by: str = "") -> bytes:
    """Return the contents of a file; a BetimesError that names it if it cannot be read."""
    try:
        if path.is_dir():
            hint = "name a file in it"
            raise BetimesError(f"{path}: is a directory, not a file\nhint: {hint}")
        if not path.is_file() and path.exists():
            raise BetimesError(f"{path}: is not a regular file")
        if path.stat().st_size > bytes_max:
            raise BetimesError(f"{path}: is too large: more than {bytes_max // 2**20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        hint = made_by or _what_is_there(path)
        raise BetimesError(f"{path}: no such file\nhint: {hint}") from None
    except OSError as error:
        raise BetimesError(f"{path}: cannot be read ({error.strerror})") from None


def _what_is_there(path: Path) -> str:
    """Return a hint for a file that does not exist: a file with a similar name in the same folder."""
    folder = path.absolute().parent
    try:
        names = [each.name for each in islice(folder.iterdir(), WORDS_COMPARED_MAX) if each.is_file()]
    except OSError:
        return f"the folder {folder} does not exist either"
    alike = [name for name in names if Path(name).suffix == path.suffix or not path.suffix]
    kind = f"{path.suffix} files" if path.suffix else "files"
    return did_you_mean(path.name, alike, f"{kind} in {folder}")
