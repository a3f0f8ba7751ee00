"""The file of `betimes sub --resume`: resume tokens by topic, replaced as a whole."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from betimes.language.resume_tokens import read_resume_token
from betimes.model.errors import SettingError, TextError

VERSION = 1
FILE_BYTES_MAX = 16_000_000
FRESH = "delete the file for a fresh start"


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Lock the file: two processes that save their positions in it would overwrite each other's."""
    beside = path.with_name(f".{path.name}.lock")
    try:
        lock = beside.open("w")
    except OSError as error:
        raise SettingError("--resume", str(path), f"cannot be written ({error.strerror})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            problem = "another betimes sub uses this file"
            raise SettingError("--resume", str(path), problem, "pass another file") from None
        yield
        beside.unlink(missing_ok=True)


def read_resume_file(path: Path) -> dict[str, list[str]]:
    """Return the resume tokens by topic; empty if there is no file yet."""
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise SettingError("--resume", str(path), "is too large for a resume file", FRESH)
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingError("--resume", str(path), f"cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError):
        raise SettingError("--resume", str(path), "is not a resume file", FRESH) from None
    topics = data.get("topics") if isinstance(data, dict) and data.get("version") == VERSION else None
    if not isinstance(topics, dict):
        raise SettingError("--resume", str(path), "is not a resume file", FRESH)
    for topic, tokens in topics.items():
        try:
            for token in tokens:
                read_resume_token(token)
        except TextError as error:
            raise SettingError("--resume", str(path), f"topic {topic}: {error.in_one_line}", FRESH) from None
        except (TypeError, AttributeError):
            problem = f"topic {topic}: must be a list of message ids"
            raise SettingError("--resume", str(path), problem, FRESH) from None
    return topics


def write_resume_file(path: Path, tokens: Mapping[str, list[str]]) -> None:
    """Replace the file in one step: a reader sees either the old or the new contents."""
    beside = path.with_name(f"{path.name}.new")
    try:
        beside.write_text(json.dumps({"version": VERSION, "topics": tokens}, indent=1) + "\n")
        os.replace(beside, path)  # noqa: PTH105 -- the name says what is meant
    except OSError as error:
        raise SettingError("--resume", str(path), f"cannot be written ({error.strerror})") from None
