"""What did the person mean by a filter?

From text to boxes in four steps: words, grammar, sqlglot's tree (which knows what binds tighter), and the
union of boxes that is true where the predicate is. Whatever is wrong with the text is a `TextError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError

from betimes.language.filters.boxes import BOXES_MAX, TooManyBoxes, boxes_of
from betimes.language.filters.grammar import check_grammar
from betimes.language.filters.predicates import Predicate
from betimes.language.filters.trees import predicate_of
from betimes.language.filters.words import Part, Word, read_words
from betimes.model.errors import TextError
from betimes.model.filters import Filter

REMEMBERED_MAX, REMEMBERED_LENGTH_MAX = 2_048, 256  # texts, and letters of one
_SPARK = Spark()


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """A filter with the names of all attributes its text mentions, even where they do not matter."""

    filter: Filter
    attributes: frozenset[str]


def parse_filter(text: str, boxes_max: int = BOXES_MAX) -> Filter:
    """Return the filter that a Spark SQL predicate says.

    >>> parse_filter("speed > 50 AND kind = 'car'").matches({"speed": 61.0, "kind": "car"})
    True
    >>> parse_filter("speed > 50").matches({})
    False
    """
    return read_filter(text, boxes_max).filter


def read_filter(text: str, boxes_max: int = BOXES_MAX) -> ReadFilter:
    """Return the filter that a text says, and which attributes it mentions.

    To read one takes long, and brokers are told the same again and again: short ones are remembered.
    """
    return _remembered(text, boxes_max) if len(text) <= REMEMBERED_LENGTH_MAX else _read(text, boxes_max)


@lru_cache(maxsize=REMEMBERED_MAX)
def _remembered(text: str, boxes_max: int) -> ReadFilter:
    return _read(text, boxes_max)


def _read(text: str, boxes_max: int) -> ReadFilter:
    words = read_words(text)
    predicate = _predicate(text, words)
    try:
        boxes = boxes_of(predicate, boxes_max)
    except TooManyBoxes:
        problem = f"this filter comes to more than {boxes_max} boxes (ANDs of ORs multiply)"
        hint = "split it into several subscriptions, or use IN and BETWEEN in place of OR"
        raise TextError(text, 0, problem, hint) from None
    return ReadFilter(
        Filter(boxes, text), frozenset(word.token.text for word in words if word.part is Part.NAME)
    )


def parse_predicate(text: str) -> Predicate:
    """Return the predicate a text says, before it becomes boxes."""
    return _predicate(text, read_words(text))


def _predicate(text: str, words: Sequence[Word]) -> Predicate:
    check_grammar(text, words)
    parser = _SPARK.parser(error_level=ErrorLevel.IMMEDIATE)
    try:
        trees = parser.parse([word.token for word in words], text)
    except ParseError as error:
        raise TextError(text, _place(text, error), "this cannot be read as a condition") from None
    except RecursionError:  # the caller's own stack counts too
        raise TextError(text, 0, "this is nested too deeply", "write it flatter") from None
    if len(trees) != 1 or trees[0] is None:
        raise TextError(text, 0, "a filter is one condition", "join several with AND or OR")
    return predicate_of(text, trees[0])


def _place(text: str, error: ParseError) -> int:
    """Return where sqlglot stopped: its column is that of a token's last letter, counted from one."""
    facts = error.errors[0] if error.errors else {}
    line, column = int(facts.get("line") or 1), int(facts.get("col") or 1)
    lines = text.splitlines(keepends=True)
    return sum(len(part) for part in lines[: line - 1]) + max(column - 1, 0)
