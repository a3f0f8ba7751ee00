"""The reader of one table of a file, which notes all mistakes.

No reader raises at the first mistake: an invalid value is noted with its place, a default takes its place,
and reading continues, so that the user sees all mistakes at once.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from betimes.language.suggestions import did_you_mean, quoted
from betimes.model.errors import FileMistakesError, Mistake, TextError

TEXT_LENGTH_MAX = 500_000_000
HINT = "write key = value, [table] or [[tables]]; texts stand in quotes"
MISTAKES_LISTED_MAX = 50
NAME_LENGTH_MAX = 200
PRICE_MAX = 1e9
T = TypeVar("T")
U = TypeVar("U")


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


class WrongValueError(Exception):
    """A value that is invalid at its place; the table that reads it knows the place."""

    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem = problem
        self.hint = hint
        super().__init__(problem)


class Mistakes:
    """The mistakes of one file, as they are found."""

    def __init__(self) -> None:
        self._found: list[Mistake] = []
        self._unlisted = 0

    def add(self, place: str, problem: str, hint: str = "") -> None:
        """Note one mistake; beyond a limit they are only counted."""
        if len(self._found) < MISTAKES_LISTED_MAX:
            self._found.append(Mistake(place=place, problem=problem, hint=hint))
        else:
            self._unlisted += 1

    def add_text_error(self, place: str, error: TextError) -> None:
        """Note a text that does not parse, with its caret."""
        shown = str(error).removesuffix(f"\nhint: {error.hint}") if error.hint else str(error)
        self.add(place, shown.replace("\n", "\n    "), error.hint)

    def raise_if_any(self, source: str) -> None:
        """Raise all of them at once."""
        if not self._found:
            return
        raise FileMistakesError(source, tuple(self._found), unlisted=self._unlisted)

    def __bool__(self) -> bool:
        return bool(self._found)


class TomlTable:
    """One table of the file: it returns values, and finally knows the keys that were not read."""

    def __init__(self, data: Mapping[str, object], place: str, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self.place = place
        self._data = data
        self._asked: list[str] = []

    def __contains__(self, key: str) -> bool:
        return key in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def place_of(self, key: str) -> str:
        """Return the written form of a key's place."""
        return f"{self.place}.{key}" if self.place else key

    def complain(self, key: str, problem: str, hint: str = "") -> None:
        """Note a mistake at a key."""
        self.mistakes.add(self.place_of(key), problem, hint)

    def optional(self, key: str, read: Callable[[object], T], otherwise: U) -> T | U:
        """Return the value of a key, or a default if it is missing or wrong."""
        self._asked.append(key)
        if key not in self._data:
            return otherwise
        try:
            return read(self._data[key])
        except WrongValueError as wrong:
            self.complain(key, wrong.problem, wrong.hint)
        except TextError as error:
            self.mistakes.add_text_error(self.place_of(key), error)
        return otherwise

    def required(self, key: str, read: Callable[[object], T], otherwise: U, example: str) -> T | U:
        """Return the value of a key; note a mistake if it is missing."""
        if key not in self._data:
            self.complain(key, "this is missing", f"write {key} = {example}")
        return self.optional(key, read, otherwise)

    def table(self, key: str) -> TomlTable | None:
        """Return the table under a key, or None if there is none."""
        data = self.optional(key, _mapping, otherwise=None)
        return None if data is None else TomlTable(data, self.place_of(key), self.mistakes)

    def nested(self, key: str, read: Callable[[TomlTable], T], otherwise: U) -> T | U:
        """Return what `read` makes of the table under a key, which it reads to the end; or a default."""
        table = self.table(key)
        if table is None:
            return otherwise
        found = read(table)
        table.close()
        return found

    def tables(self, key: str, count_max: int, hint_if_none: str = "") -> Iterator[TomlTable]:
        """Yield the tables under a key, and close each; with a hint, it is a mistake if there are none."""
        self._asked.append(key)
        items = self._data.get(key, [])
        if not items and hint_if_none:
            self.complain(key, f"there are no {key}", hint_if_none)
            return
        if not isinstance(items, list):
            self.complain(key, "a list of tables was expected here", f"write [[{key}]] above each of them")
            return
        if len(items) > count_max:
            self.complain(key, f"there are {len(items):,} of them, and {count_max:,} are allowed")
            items = items[:count_max]
        for number, item in enumerate(items):
            place = f"{self.place_of(key)}[{number}]"
            if isinstance(item, dict):
                table = TomlTable(item, place, self.mistakes)
                yield table
                table.close()
            else:
                self.mistakes.add(place, f"a table was expected here, not {described(item)}")

    def ignore(self, key: str) -> None:
        """Mark a key as known, whatever its value."""
        self._asked.append(key)

    def close(self) -> None:
        """Note every key that was not read."""
        for key in self._data:
            if key not in self._asked:
                hint = did_you_mean(key, self._asked, "keys here")
                self.complain(key, "this key is not known here", hint)


def described(value: object) -> str:
    """Return the kind of a value, in words."""
    match value:
        case bool():
            return "true or false"
        case str():
            return f"the text {quoted(value)}"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case dict():
            return "a table"
    return "a date or time"


def any_text(value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        raise WrongValueError(f"a text was expected here, not {described(value)}", "put it in quotes")
    return value


def name(value: object) -> str:
    """Return a name: a text that is distinct in messages and in `a->b`."""
    text = any_text(value)
    if not text.strip():
        raise WrongValueError("a name cannot be empty")
    if len(text) > NAME_LENGTH_MAX:
        raise WrongValueError(f"a name has at most {NAME_LENGTH_MAX} letters")
    if "->" in text or not text.isprintable():
        raise WrongValueError(
            "a name is printable and has no -> in it", "links are named a->b after brokers a and b"
        )
    return text


def flag(value: object) -> bool:
    """Return true or false."""
    if not isinstance(value, bool):
        raise WrongValueError(f"true or false was expected here, not {described(value)}")
    return value


def number(value: object) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = "leave out the quotes" if isinstance(value, str) else ""
        raise WrongValueError(f"a number was expected here, not {described(value)}", hint)
    try:
        finite = math.isfinite(value)
    except OverflowError:
        finite = False
    if not finite:
        raise WrongValueError("a finite number was expected here")
    return float(value)


def number_between(low: float, high: float) -> Callable[[object], float]:
    """Return a reader of numbers between two ends, both allowed."""

    def read(value: object) -> float:
        found = number(value)
        if not low <= found <= high:
            allowed = f"at least {low:g}" if high == math.inf else f"between {low:g} and {high:g}"
            raise WrongValueError(f"{found:g} is not possible here: it must be {allowed}")
        return found

    return read


def count_between(low: int, high: int) -> Callable[[object], int]:
    """Return a reader of whole numbers between two ends, both allowed."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongValueError(f"a whole number was expected here, not {described(value)}")
        if not low <= value <= high:
            raise WrongValueError(f"{value} is not possible here: it must be between {low:,} and {high:,}")
        return value

    return read


def quantity(read: Callable[[str], float], example: str) -> Callable[[object], float]:
    """Return a reader of quantities with a unit, such as durations."""

    def read_value(value: object) -> float:
        if not isinstance(value, str):
            raise WrongValueError(
                f"a quantity with its unit was expected here, not {described(value)}", f'write "{example}"'
            )
        return read(value)

    return read_value


def positive(read: Callable[[object], float]) -> Callable[[object], float]:
    """Return a reader that also rejects zero."""

    def read_positive(value: object) -> float:
        found = read(value)
        if found <= 0:
            raise WrongValueError("this must be more than zero")
        return found

    return read_positive


def one_of(*choices: str) -> Callable[[object], str]:
    """Return a reader of one of a few words."""

    def read(value: object) -> str:
        word = any_text(value)
        if word not in choices:
            raise WrongValueError(
                f"{quoted(word)} is not possible here", did_you_mean(word, choices, "words")
            )
        return word

    return read


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise WrongValueError(f"a table was expected here, not {described(value)}")
    return value
