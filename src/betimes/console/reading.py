"""How is a file that the user named read, or refused?"""

from __future__ import annotations

from pathlib import Path

from betimes.model.errors import BetimesError

BYTES_MAX = 64 * 1024 * 1024  # a scenario is text a person wrote


def read_text_file(path: Path) -> str:
    """Return the text of a file; a BetimesError that names it where it cannot be had."""
    try:
        # Some editors put a mark in front.
        return _as_lines(read_binary_file(path, BYTES_MAX).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BetimesError(f"{path}: is not UTF-8 text (byte {error.start})") from None


def read_binary_file(path: Path, bytes_max: int) -> bytes:
    """Return what is in a file; a BetimesError that names it where it cannot be had."""
    try:
        if path.is_dir():
            raise BetimesError(f"{path}: is a directory, and a file was expected")
        if not path.is_file() and path.exists():
            raise BetimesError(f"{path}: is no ordinary file")
        if path.stat().st_size > bytes_max:
            raise BetimesError(f"{path}: is too large: more than {bytes_max // 2**20} MB")
        return path.read_bytes()
    except FileNotFoundError:
        raise BetimesError(f"{path}: there is no such file") from None
    except OSError as error:
        raise BetimesError(f"{path}: cannot be read ({error.strerror})") from None


def _as_lines(text: str) -> str:
    """Return the text with its lines ended as Python ends them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
