"""Do the words of a filter stand in an order that makes sense, and where is the first that does not?

The grammar is a table: what was read so far decides what may come next. sqlglot would accept more than
a filter is (an alias, a shift, a function), and says less about where and why it does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from betimes.language.filters.words import ARITHMETIC, ARITHMETIC_HINT, Part, Word
from betimes.language.suggestions import closest, quoted
from betimes.model.errors import TextError

NESTING_MAX = 32  # sqlglot needs some twenty Python frames for each level


class Next(Enum):
    """What may come next, as it is said in a message."""

    OPERAND = "an attribute or a value"
    VALUE = "a value"
    NUMBER = "a number"
    OPERATOR = "a comparison, AND, OR or the end"
    NEGATED = "IN, LIKE or BETWEEN"
    LIST = "a list in parentheses"
    IS_WHAT = "NULL, NOT NULL, TRUE or FALSE"
    IS_NOT_WHAT = "NULL, TRUE or FALSE"
    PATTERN = "a text such as 'prefix%'"
    ESCAPE = "the escape letter as a text"


_VALUE: Mapping[Part, Next] = {
    Part.NAME: Next.OPERATOR,
    Part.NUMBER: Next.OPERATOR,
    Part.TEXT: Next.OPERATOR,
    Part.CONSTANT: Next.OPERATOR,
    Part.SIGN: Next.NUMBER,
    Part.OPEN: Next.OPERAND,
}
_TABLE: Mapping[Next, Mapping[Part, Next]] = {
    Next.OPERAND: {**_VALUE, Part.NOT: Next.OPERAND},
    Next.VALUE: _VALUE,
    Next.NUMBER: {Part.NUMBER: Next.OPERATOR},
    Next.OPERATOR: {
        Part.COMPARISON: Next.VALUE,
        Part.AND: Next.OPERAND,
        Part.OR: Next.OPERAND,
        Part.NOT: Next.NEGATED,
        Part.IN: Next.LIST,
        Part.IS: Next.IS_WHAT,
        Part.LIKE: Next.PATTERN,
        Part.BETWEEN: Next.VALUE,
        Part.ESCAPE: Next.ESCAPE,
        Part.COMMA: Next.VALUE,
        Part.CLOSE: Next.OPERATOR,
    },
    Next.NEGATED: {Part.IN: Next.LIST, Part.LIKE: Next.PATTERN, Part.BETWEEN: Next.VALUE},
    Next.LIST: {Part.OPEN: Next.VALUE},
    Next.IS_WHAT: {Part.CONSTANT: Next.OPERATOR, Part.NOT: Next.IS_NOT_WHAT},
    Next.IS_NOT_WHAT: {Part.CONSTANT: Next.OPERATOR},
    Next.PATTERN: {Part.TEXT: Next.OPERATOR, Part.CONSTANT: Next.OPERATOR},
    Next.ESCAPE: {Part.TEXT: Next.OPERATOR},
}
_COMPARING = frozenset({Part.COMPARISON, Part.IN, Part.IS, Part.LIKE, Part.BETWEEN})
_KEYWORDS = ("AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN")
_DOUBLED: Mapping[str, str] = {
    ">>": ">", "<<": "<", "==": "=", "===": "=", "====": "=", "=<": "<=", "=>": ">=", "><": "<>", "!==": "<>",
    "<>=": "<>", "=!": "!=", "<==": "<=", ">==": ">=", "=>=": ">=", "=<=": "<=", ">=<": "<>",
}  # fmt: skip


@dataclass(slots=True)
class _Level:
    """What is open at one level of parentheses."""

    opened: Word | None = None
    is_list: bool = False
    nots: int = 0  # before the condition being read
    compared: bool = False  # the condition being read has its comparison
    between: Word | None = None  # a BETWEEN that still waits for its AND
    after_pattern: bool = False  # the last word was the text after LIKE


def check_grammar(text: str, words: Sequence[Word]) -> None:
    """Raise a `TextError` at the first word that cannot stand where it does."""
    checker = _Checker(text)
    for word in words:
        checker.take(word)
    checker.finish()


class _Checker:
    """Reads word after word; knows what may come next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._next = Next.OPERAND
        self._levels = [_Level()]
        self._depth = 0
        self._last: Word | None = None

    def take(self, word: Word) -> None:
        """Move on by one word, or raise."""
        level = self._levels[-1]
        following = _TABLE[self._next].get(word.part)
        if following is None:
            self._refuse(word)
        elif self._next is Next.OPERATOR:
            following = self._after_operand(level, word, following)
        elif word.part is Part.OPEN:
            self._open(word)
        elif word.part is Part.NOT and self._next is Next.OPERAND:
            level.nots += 1
            self._deeper(word)
        if self._next is Next.NEGATED and word.part is Part.BETWEEN:
            level.between = word
        self._levels[-1].after_pattern = self._next is Next.PATTERN
        self._next = following or self._next
        self._last = word

    def finish(self) -> None:
        """Raise where the text ends too early."""
        if self._next is not Next.OPERATOR:
            last = self._last
            place = min(len(self._text), last.end + 1) if last else 0
            hint = "write the value that is missing" if self._next is Next.VALUE else ""
            raise TextError(
                self._text, place, f"{self._next.value} was expected here, but the text ends", hint
            )
        level = self._levels[-1]
        self._refuse_half_between(level)
        if level.opened is not None:
            raise TextError(self._text, level.opened.start, "this parenthesis is not closed", "add a )")

    def _after_operand(self, level: _Level, word: Word, following: Next) -> Next:
        """Return what comes next after an operator, minding what is open."""
        part = word.part
        if level.is_list and part not in (Part.COMMA, Part.CLOSE):
            raise TextError(self._text, word.start, "a list holds single values only", "write IN (1, 2, 3)")
        if part is Part.AND and level.between is not None:
            level.between = None
            return Next.VALUE
        if part is Part.ESCAPE and not level.after_pattern:
            raise TextError(self._text, word.start, "ESCAPE belongs after the text of LIKE")
        if part is Part.COMMA and not level.is_list:
            hint = "join conditions with AND or OR; a list comes after IN"
            raise TextError(self._text, word.start, "a comma belongs into a list only", hint)
        if part in _COMPARING or part is Part.NOT:
            self._compare(level, word)
        elif part in (Part.AND, Part.OR, Part.CLOSE):
            self._end_condition(level, word)
        return following

    def _compare(self, level: _Level, word: Word) -> None:
        if level.compared:
            hint = "join conditions with AND; for a range write speed BETWEEN 3 AND 5"
            raise TextError(self._text, word.start, "a comparison cannot follow another", hint)
        level.compared = True
        if word.part is Part.BETWEEN:
            level.between = word

    def _end_condition(self, level: _Level, word: Word) -> None:
        self._refuse_half_between(level)
        self._depth -= level.nots
        level.nots, level.compared = 0, False
        if word.part is Part.CLOSE:
            if level.opened is None:
                raise TextError(
                    self._text, word.start, "there is no ( for this )", "leave it out, or add a ("
                )
            self._levels.pop()
            self._depth -= 1

    def _open(self, word: Word) -> None:
        self._levels.append(_Level(opened=word, is_list=self._next is Next.LIST))
        self._deeper(word)

    def _deeper(self, word: Word) -> None:
        self._depth += 1
        if self._depth > NESTING_MAX:
            problem = f"more than {NESTING_MAX} parentheses and NOTs inside each other"
            raise TextError(self._text, word.start, problem, "write it flatter")

    def _refuse_half_between(self, level: _Level) -> None:
        if level.between is not None:
            hint = "write speed BETWEEN 3 AND 5"
            raise TextError(
                self._text, level.between.start, "this BETWEEN has no AND with the upper end", hint
            )

    def _refuse(self, word: Word) -> None:
        """Raise what fits a word that cannot stand here."""
        last = self._last
        if word.part is Part.OPEN and self._next is Next.OPERATOR and last and last.part is Part.NAME:
            hint = "compare the attribute itself: speed > 5"
            raise TextError(self._text, last.start, "functions are not part of a filter", hint)
        problem, hint = self._complaint(word)
        raise TextError(self._text, word.start, problem, hint)

    def _complaint(self, word: Word) -> tuple[str, str]:
        written = self._text[word.start : word.end]
        problem = f"{self._next.value} was expected here, not {quoted(written)}"
        last = self._last
        if self._next is Next.OPERATOR:
            return self._complaint_after_operand(word, problem)
        if self._next is Next.NUMBER:
            return ARITHMETIC, ARITHMETIC_HINT
        if last is not None and Part.COMPARISON in (last.part, word.part):
            meant = _DOUBLED.get(self._text[last.start : last.end] + written)
            return problem, f"did you mean {meant}?" if meant else ""
        if self._next in (Next.IS_WHAT, Next.IS_NOT_WHAT):
            return problem, "to compare write = or <>; <=> also takes NULL for a value"
        if self._next is Next.LIST:
            return problem, "write IN (1, 2, 3)"
        if self._next is Next.PATTERN:
            return problem, "write LIKE 'prefix%'"
        return problem, ""

    def _complaint_after_operand(self, word: Word, problem: str) -> tuple[str, str]:
        """Return what fits a word that follows an attribute or a value it cannot follow."""
        last = self._last
        assert last is not None, "an operator is expected only after something"
        if word.part is Part.SIGN:
            return ARITHMETIC, ARITHMETIC_HINT
        if word.part is Part.TEXT and last.part is Part.TEXT:
            return (
                "two texts stand side by side",
                "put a comma between them, or double a quote that is meant: 'it''s'",
            )
        if self._levels[-1].is_list:
            return "a comma or a ) was expected here", "write IN (1, 2, 3)"
        if word.part is Part.NAME:
            near = closest(word.token.text, _KEYWORDS)
            return problem, f"did you mean {near}?" if near else "join conditions with AND or OR"
        if last.part is Part.NAME and (near := closest(last.token.text, _KEYWORDS)):
            return problem, f"did you mean {near} before it?"
        return problem, ""
