"""TOML text to tables, or one mistake with its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

from betimes.model.errors import FileMistakesError, Mistake

TEXT_LENGTH_MAX = 500_000_000
HINT = "write key = value, [table] or [[tables]]; texts stand in quotes"


def read_toml(text: str, source: str, *, before: str = "", after: str = "") -> Mapping[str, object]:
    """Return the TOML data; raise one mistake with its line if the text is no TOML.

    The place does not count `before` and `after`, which the caller put around the text.
    """
    if len(text) > TEXT_LENGTH_MAX:
        raise one_mistake(source, "file", f"it has more than {TEXT_LENGTH_MAX:,} letters")
    try:
        return tomllib.loads(f"{before}{text}{after}")
    except RecursionError:
        raise one_mistake(source, "file", "its lists or tables are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise one_mistake(source, *_syntax_mistake(text, len(before), str(error)), HINT) from None
    except ValueError:  # tomllib lets the ValueError of int() for thousands of digits through
        raise one_mistake(source, "file", "a number in it has thousands of digits") from None


def one_mistake(source: str, place: str, problem: str, hint: str = "") -> FileMistakesError:
    """Return the error for a file that is wrong as a whole."""
    return FileMistakesError(source, (Mistake(place=place, problem=problem, hint=hint),))


def _syntax_mistake(text: str, before: int, message: str) -> tuple[str, str]:
    """Return place and problem of a message of tomllib, which has the place in its words only."""
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)", message)
    problem = f"this is not TOML: {message[: found.start()] if found else message}"
    lines = text.split("\n")
    if not found or not found.group(1):
        return f"line {len(lines)}", problem
    line, column = int(found.group(1)), int(found.group(2))
    column = min(column - before * (line == 1), len(lines[line - 1]) + 1)
    return f"line {line}, column {column}", problem
