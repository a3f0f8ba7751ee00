"""The errors of wrong input, with the facts for the user.

The user can correct every error here: it carries the facts (the text, the place, a hint) and prints as one
message. A bug of ours is an `assert`, an expected outcome is a value; neither belongs here.
"""

from __future__ import annotations

from dataclasses import dataclass


class BetimesError(Exception):
    """Input to Betimes (a text, a file, a setting) is wrong, and the message states what."""


class TextError(BetimesError):
    """A text that does not parse: shown with a caret under the place and a hint.

    >>> print(TextError("speed >> 5", 7, "a number was expected here", "write speed > 5"))
    a number was expected here
      speed >> 5
             ^
    hint: write speed > 5
    """

    def __init__(self, text: str, position: int, problem: str, hint: str = "") -> None:
        self.text = text
        self.position = min(max(position, 0), len(text))
        self.problem = problem
        self.hint = hint
        super().__init__(self._message())

    def __reduce__(self) -> tuple[type[TextError], tuple[str, int, str, str]]:
        """Keep the facts when an error crosses from a Spark worker to the driver."""
        return type(self), (self.text, self.position, self.problem, self.hint)

    @property
    def in_one_line(self) -> str:
        """Return it in one line, with a caret before the place."""
        shown = f"{self.text[: self.position]}^{self.text[self.position :]}"
        hint = f" (hint: {self.hint})" if self.hint else ""
        return " ".join(f"{self.problem}: {shown}{hint}".split())

    def _message(self) -> str:
        before, line, column = _line_at(self.text, self.position)
        where = f" (line {before + 1})" if before else ""
        hint = f"\nhint: {self.hint}" if self.hint else ""
        return f"{self.problem}{where}\n  {line}\n  {' ' * column}^{hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mistake:
    """One mistake in a file: its place, the problem, and a hint."""

    place: str
    problem: str
    hint: str = ""

    def __str__(self) -> str:
        hint = f" (hint: {self.hint})" if self.hint else ""
        return f"{self.place}: {self.problem}{hint}"


class FileMistakesError(BetimesError):
    """A file with mistakes: all of them, or, if there are very many, the first."""

    def __init__(self, source: str, mistakes: tuple[Mistake, ...], unlisted: int = 0) -> None:
        assert mistakes, "an error without a mistake"
        self.source = source
        self.mistakes = mistakes
        self.unlisted = unlisted
        total = len(mistakes) + unlisted
        count = "1 mistake" if total == 1 else f"{total} mistakes"
        lines = "".join(f"\n  {mistake}" for mistake in mistakes)
        lines += f"\n  and {unlisted} more" if unlisted else ""
        super().__init__(f"{source}: {count}{lines}")

    def __reduce__(self) -> tuple[type[FileMistakesError], tuple[str, tuple[Mistake, ...], int]]:
        """Keep the facts when an error crosses from a Spark worker to the driver."""
        return type(self), (self.source, self.mistakes, self.unlisted)


class SettingError(BetimesError):
    """A setting or argument out of range: its name, its value and what would be valid."""

    def __init__(self, setting: str, value: object, problem: str, hint: str = "") -> None:
        self.setting = setting
        self.value = value
        self.problem = problem
        self.hint = hint
        tail = f"\nhint: {hint}" if hint else ""
        super().__init__(f"{setting} = {value!r}: {problem}{tail}")

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, object, str, str]]:
        """Keep the facts when an error crosses from a Spark worker to the driver."""
        return type(self), (self.setting, self.value, self.problem, self.hint)


def _line_at(text: str, position: int) -> tuple[int, str, int]:
    """Return the number of lines before the position, its line, and its column there."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line = text[start:] if end < 0 else text[start:end]
    return text.count("\n", 0, position), line, position - start
