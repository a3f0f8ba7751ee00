"""How is a file that the user named read, or refused?"""

from __future__ import annotations

from pathlib import Path

from betimes.model.errors import BetimesError

BYTES_MAX = 64 * 1024 * 1024  # a scenario is text a person wrote


def read_text_file(path: Path) -> str:
    """Return the text of a file; a BetimesError that names it where it cannot be had."""
    try:
        if path.is_dir():
            raise BetimesError(f"{path}: is a directory, and a file was expected")
        if not path.is_file() and path.exists():
            raise BetimesError(f"{path}: is no ordinary file")
        if path.stat().st_size > BYTES_MAX:
            raise BetimesError(f"{path}: is larger than {BYTES_MAX // 2**20} MB, too large for a text file")
        return path.read_text(encoding="utf-8-sig")  # some editors put a mark in front
    except FileNotFoundError:
        raise BetimesError(f"{path}: there is no such file") from None
    except UnicodeDecodeError as error:
        raise BetimesError(f"{path}: is not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise BetimesError(f"{path}: cannot be read ({error.strerror})") from None
