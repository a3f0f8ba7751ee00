"""The parser of filters: from a text to a predicate by recursive descent, and on to a filter's boxes.

The language is a subset of Spark SQL's predicates:

    either     = all {OR all}
    all        = negation {AND negation}
    negation   = {NOT} condition
    condition  = operand [comparison operand | [NOT] IN "(" operand {"," operand} ")"
                 | IS [NOT] constant | [NOT] BETWEEN operand AND operand | [NOT] LIKE text [ESCAPE text]]
    operand    = name | [+ or -] number | text | constant | "(" either ")"

Parentheses may enclose a condition or an operand, so both are nodes here. Their meaning is checked apart from
the syntax: a condition cannot be compared, and a value alone is not a condition. Invalid tokens are reported
first, then syntax errors, then semantic errors. Length and nesting of a text are bounded: time is linear in
the length, and the stack needs five frames for each level of nesting.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NoReturn

from betimes.language.filters.boxes import BOXES_MAX, TooManyBoxes, boxes_of
from betimes.language.filters.constraints import meet
from betimes.language.filters.predicates import And, Known, Like, Missing, Not, OneOf, Or, Order, Predicate
from betimes.language.filters.tokens import (
    ARITHMETIC,
    RESERVED_WORDS,
    TEXT_LENGTH_MAX,
    TOO_LARGE,
    TokenKind,
    check_tokens,
    name_of,
    text_of,
    token_spans,
    tokenize,
)
from betimes.language.suggestions import closest, quoted
from betimes.model.errors import TextError
from betimes.model.events import flag_reading, number_reading
from betimes.model.filters import Box, Constraint, Filter, Interval, TextSet

NESTING_MAX = 32
CACHED_TEXTS_MAX, CACHED_LENGTH_MAX = 2_048, 256  # length in letters
REFUSALS_MAX = 256  # texts whose refusal is remembered, of 10,000 letters at most

_OPERAND = "an attribute or a value"
_VALUE = "a value"
_NUMBER = "a number"
_OPERATOR = "a comparison, AND, OR or the end"
_NEGATED = "IN, LIKE or BETWEEN"
_LIST = "a list in parentheses"
_IS = "NULL, NOT NULL, TRUE or FALSE"
_IS_NOT = "NULL, TRUE or FALSE"
_PATTERN = "a text such as 'prefix%'"
_ESCAPE = "the escape letter as a text"
_HINTS: Mapping[str, str] = {
    _IS: "to compare write = or <>; <=> also takes NULL for a value",
    _IS_NOT: "to compare write = or <>; <=> also takes NULL for a value",
    _LIST: "write IN (1, 2, 3)",
    _PATTERN: "write LIKE 'prefix%'",
}
_SUGGESTED = ("AND", "OR", "NOT", "IN", "IS", "LIKE", "BETWEEN")
_DOUBLED: Mapping[str, str] = {
    ">>": ">", "<<": "<", "==": "=", "===": "=", "====": "=", "=<": "<=", "=>": ">=", "><": "<>", "!==": "<>",
    "<>=": "<>", "=!": "!=", "<==": "<=", ">==": ">=", "=>=": ">=", "=<=": "<=", ">=<": "<>",
}  # fmt: skip
_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_MIRRORED: Mapping[str, str] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPARING = frozenset(
    {TokenKind.COMPARISON, TokenKind.IN, TokenKind.IS, TokenKind.LIKE, TokenKind.BETWEEN, TokenKind.NOT}
)
_OPERANDS = frozenset({TokenKind.NAME, TokenKind.NUMBER, TokenKind.TEXT, TokenKind.CONSTANT})
_UNEQUAL = ("<>", "!=")
_DEFAULT_ESCAPE = "\\"
_UNKNOWN = Known(None)
_PLAIN_NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
_PLAIN_TERM = re.compile(
    rf"""\s* ([A-Za-z_]\w*) \s*
    (?: (<=|>=|<|>|=) \s* (?: {_PLAIN_NUMBER} | '([^'\\]*)' )
      | (?i:BETWEEN) \s+ {_PLAIN_NUMBER} \s+ (?i:AND) \s+ {_PLAIN_NUMBER} )
    (?: \s+ ((?i:AND)) \s | \s*\Z )""",
    re.VERBOSE | re.ASCII,
)


@dataclass(slots=True)
class _Attribute:
    name: str
    index: int  # of its token


@dataclass(slots=True)
class _Literal:
    value: float | str | bool | None
    index: int


Operand = _Attribute | _Literal
Node = Operand | Predicate


@dataclass(frozen=True, slots=True)
class ReadFilter:
    """A filter with the names of all attributes in its text, even those that make no difference."""

    filter: Filter
    attributes: frozenset[str]


def parse_filter(text: str, boxes_max: int = BOXES_MAX) -> Filter:
    """Return the filter of a Spark SQL predicate, or raise a `TextError`.

    >>> parse_filter("speed > 50 AND kind = 'car'").matches({"speed": 61.0, "kind": "car"})
    True
    >>> parse_filter("speed > 50").matches({})
    False
    """
    return read_filter(text, boxes_max).filter


def read_filter(text: str, boxes_max: int = BOXES_MAX) -> ReadFilter:
    """Return the filter of a text together with the attributes it mentions.

    Short texts are cached, and so are refusals of any text: a client that repeats one costs nearly nothing.
    """
    refusal = _refused.get((text, boxes_max))
    if refusal is not None:
        raise TextError(*refusal)
    try:
        if len(text) <= CACHED_LENGTH_MAX:
            return _cached(text, boxes_max)
        return parse_uncached(text, boxes_max)
    except TextError as error:
        if len(text) <= TEXT_LENGTH_MAX:
            if len(_refused) >= REFUSALS_MAX:
                del _refused[next(iter(_refused))]
            _refused[text, boxes_max] = (error.text, error.position, error.problem, error.hint)
        raise


def parse_uncached(text: str, boxes_max: int = BOXES_MAX) -> ReadFilter:
    """Return the same without the cache."""
    plain = plain_box(text)
    if plain is not None:
        return ReadFilter(Filter((plain,), text), frozenset([name for name, _ in plain.constraints]))
    return parse_fully(text, boxes_max)


# What their errors say, the oldest first: an error itself would keep all that led to it.
_refused: dict[tuple[str, int], tuple[str, int, str, str]] = {}
_cached = lru_cache(maxsize=CACHED_TEXTS_MAX)(parse_uncached)


def parse_fully(text: str, boxes_max: int = BOXES_MAX) -> ReadFilter:
    """Return the same without the cache, and without the shortcut for plain texts."""
    parser = _Parser(text)
    predicate = parser.parse()
    try:
        boxes = boxes_of(predicate, boxes_max)
    except TooManyBoxes:
        problem = f"this filter comes to more than {boxes_max} boxes (ANDs of ORs multiply)"
        hint = "split it into several subscriptions, or use IN and BETWEEN in place of OR"
        raise TextError(text, 0, problem, hint) from None
    return ReadFilter(Filter(boxes, text), frozenset(parser.attributes))


def parse_predicate(text: str) -> Predicate:
    """Return the predicate of a text, before it becomes boxes."""
    return _Parser(text).parse()


def plain_box(text: str) -> Box | None:
    """Return the one box of a text that only joins plain comparisons by AND, or None for any other text.

    A shortcut for filters that programs write, three to five times as fast as the parser. A property test
    proves both equal. The shortcut reports no errors: every text it does not take is left to the parser.
    """
    if len(text) > TEXT_LENGTH_MAX or not text.isascii():
        return None
    found: dict[str, Constraint] = {}
    place = 0
    while True:
        term = _PLAIN_TERM.match(text, place)
        if term is None:
            return None
        name, operator, number, written, low, high, joint = term.groups()
        if written is not None:
            is_text = operator == "=" and number_reading(written) is None and flag_reading(written) is None
            constraint: Constraint | None = TextSet(frozenset((written,))) if is_text else None
        else:
            constraint = _plain_interval(operator, number or low, number or high)
        if constraint is not None and name in found:
            met = meet((found[name], constraint))
            constraint = met[0] if met is not None and len(met) == 1 else None
        if constraint is None or name.upper() in RESERVED_WORDS:
            return None
        found[name] = constraint
        if joint is None:
            return Box(tuple(sorted(found.items())))
        place = term.end()


def _plain_interval(operator: str | None, low: str, high: str) -> Interval | None:
    """Return the interval of a comparison, or (no operator) of BETWEEN; None if empty or not finite."""
    bottom, top = float(low), float(high)
    if not (bottom <= top and math.isfinite(bottom) and math.isfinite(top)):
        return None
    if operator in ("<", "<="):
        return Interval(-math.inf, top, high_inside=operator == "<=")
    if operator in (">", ">="):
        return Interval(bottom, math.inf, low_inside=operator == ">=")
    return Interval(bottom, top)


class _Parser:
    """Reads the tokens of one text from left to right; `_index` is the next one."""

    __slots__ = ("_index", "_kinds", "_semantic_error", "_text", "_tokens", "attributes")

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens, self._kinds = tokenize(text)
        self._index = 0
        self._semantic_error: tuple[int, str, str] | None = None  # the leftmost one: index, problem, hint
        self.attributes: list[str] = []

    def parse(self) -> Predicate:
        """Return the predicate of the whole text."""
        predicate = self._as_predicate(self._either(0))
        if self._kinds[self._index] is not TokenKind.END:
            self._unexpected_operator()
        if self._semantic_error is not None:
            self._fail(*self._semantic_error)
        return predicate

    def _either(self, depth: int) -> Node:
        node = self._all(depth)
        if self._kinds[self._index] is not TokenKind.OR:
            return node
        parts = [self._as_predicate(node)]
        while self._kinds[self._index] is TokenKind.OR:
            self._index += 1
            parts.append(self._as_predicate(self._all(depth)))
        return Or(tuple(parts))

    def _all(self, depth: int) -> Node:
        node = self._negation(depth)
        if self._kinds[self._index] is not TokenKind.AND:
            return node
        parts = [self._as_predicate(node)]
        while self._kinds[self._index] is TokenKind.AND:
            self._index += 1
            parts.append(self._as_predicate(self._negation(depth)))
        return And(tuple(parts))

    def _negation(self, depth: int) -> Node:
        first = self._index
        while self._kinds[self._index] is TokenKind.NOT:
            depth = self._deeper(depth, self._index)
            self._index += 1
        nots = self._index - first
        node = self._condition(depth)
        for _ in range(nots):
            node = Not(self._as_predicate(node))
        return node

    def _condition(self, depth: int) -> Node:
        """Return a condition, or the operand that stands where one might be."""
        first = self._index
        node = self._operand(_OPERAND, depth)
        operator = self._index
        kind = self._kinds[operator]
        if kind not in _COMPARING:
            return node
        self._index += 1
        left = self._compared(node, first)
        if kind is TokenKind.COMPARISON:
            predicate = self._comparison(left, self._tokens[operator], self._value(depth))
        elif kind is TokenKind.IS:
            predicate = self._is(left)
        else:
            predicate = self._in_like_or_between(left, operator, depth)
        if self._kinds[self._index] in _COMPARING:
            self._unexpected_operator()
        return predicate

    def _in_like_or_between(self, left: Operand, index: int, depth: int) -> Predicate:
        is_negated = self._kinds[index] is TokenKind.NOT
        if is_negated:
            index = self._index
            self._index += 1
        kind = self._kinds[index]
        if kind is TokenKind.LIKE:
            return self._like(left, negated=is_negated)
        if kind is TokenKind.IN:
            predicate = self._in(left, depth)
        elif kind is TokenKind.BETWEEN:
            predicate = self._between(left, index, depth)
        else:
            self._unexpected(index, _NEGATED)
        return Not(predicate) if is_negated else predicate

    def _in(self, left: Operand, depth: int) -> Predicate:
        opened = self._index
        if self._kinds[opened] is not TokenKind.OPEN:
            self._unexpected(opened, _LIST)
        depth = self._deeper(depth, opened)
        items: list[Operand] = []
        kind = TokenKind.COMMA
        while kind is TokenKind.COMMA:
            self._index += 1
            items.append(self._value(depth))
            kind = self._kinds[self._index]
        self._close(opened, is_list=True)
        values = [item.value for item in items if isinstance(item, _Literal)]
        if isinstance(left, _Literal) or len(values) < len(items):
            return Or(tuple(self._comparison(left, "=", item) for item in items))
        return _listed(left.name, values)

    def _between(self, left: Operand, index: int, depth: int) -> Predicate:
        low = self._value(depth)
        kind = self._kinds[self._index]
        if kind in (TokenKind.OR, TokenKind.CLOSE, TokenKind.END):
            hint = "write speed BETWEEN 3 AND 5"
            self._fail(index, "this BETWEEN has no AND with the upper end", hint)
        if kind is not TokenKind.AND:
            self._unexpected_operator()
        self._index += 1
        high = self._value(depth)
        return And((self._comparison(left, ">=", low), self._comparison(left, "<=", high)))

    def _is(self, left: Operand) -> Predicate:
        is_negated = self._kinds[self._index] is TokenKind.NOT
        self._index += is_negated
        if self._kinds[self._index] is not TokenKind.CONSTANT:
            self._unexpected(self._index, _IS_NOT if is_negated else _IS)
        asked = _CONSTANTS[self._tokens[self._index].upper()]
        self._index += 1
        same = _same(left.name, asked) if isinstance(left, _Attribute) else Known(left.value is asked)
        return Not(same) if is_negated else same

    def _like(self, left: Operand, *, negated: bool) -> Predicate:
        index = self._index
        if self._kinds[index] not in (TokenKind.TEXT, TokenKind.CONSTANT):
            self._unexpected(index, _PATTERN)
        pattern = self._value(0)
        escape = self._escape() if self._kinds[self._index] is TokenKind.ESCAPE else _DEFAULT_ESCAPE
        assert isinstance(pattern, _Literal), "a text or a constant"
        if isinstance(pattern.value, bool | float):
            self._add_semantic_error(index, "LIKE takes a text", "write LIKE 'prefix%'")
            return _UNKNOWN
        if pattern.value is None:
            return _UNKNOWN
        text, is_prefix = self._pattern(index, pattern.value, escape)
        if isinstance(left, _Attribute):
            return Like(left.name, text, is_prefix, negated)
        found = Known(Like("", text, is_prefix).of(left.value))
        return Not(found) if negated else found

    def _escape(self) -> str:
        """Return the letter after ESCAPE."""
        self._index += 1
        if self._kinds[self._index] is not TokenKind.TEXT:
            self._unexpected(self._index, _ESCAPE)
        escape = text_of(self._tokens[self._index])
        if len(escape) != 1:
            self._add_semantic_error(self._index, "the escape is one letter", "write LIKE '10/%%' ESCAPE '/'")
        self._index += 1
        return escape

    def _pattern(self, index: int, pattern: str, escape: str) -> tuple[str, bool]:
        """Return the text of a LIKE pattern without its escapes, and whether more may follow it."""
        plain: list[str] = []
        wildcards: list[int] = []  # their places in the plain text
        letters = iter(pattern)
        for letter in letters:
            if letter != escape:
                wildcards += [len(plain)] if letter in "%_" else []
                plain.append(letter)
                continue
            following = next(letters, "")
            if following not in ("%", "_", escape):
                hint = f"only %, _ and {escape} are escaped; double a {escape} that is meant"
                self._add_semantic_error(index, f"nothing here needs the escape {quoted(escape)}", hint)
            plain.append(following)
        is_prefix = False
        while wildcards and wildcards[-1] == len(plain) - 1 and plain[-1] == "%":
            wildcards.pop()
            plain.pop()
            is_prefix = True
        if wildcards:
            sign = plain[wildcards[0]]
            hint = f"only a % at the end is a wildcard here; write {escape}{sign} for the sign itself"
            self._add_semantic_error(index, f"the pattern has a {quoted(sign)} before its end", hint)
        return "".join(plain), is_prefix

    def _value(self, depth: int) -> Operand:
        """Return the next operand, which must not be a condition."""
        first = self._index
        return self._compared(self._operand(_VALUE, depth), first)

    def _operand(self, expected: str, depth: int) -> Node:
        """Return an attribute, a value, or the content of parentheses."""
        index = self._index
        kind, token = self._kinds[index], self._tokens[index]
        self._index += 1
        if kind is TokenKind.NAME:
            name = name_of(token)
            self.attributes.append(name)
            return _Attribute(name, index)
        if kind is TokenKind.NUMBER:
            return self._number(index)
        if kind is TokenKind.TEXT:
            return _Literal(text_of(token), index)
        if kind is TokenKind.CONSTANT:
            return _Literal(_CONSTANTS[token.upper()], index)
        if kind is TokenKind.SIGN:
            if self._kinds[index + 1] is not TokenKind.NUMBER:
                self._unexpected(index + 1, _NUMBER)
            self._index += 1
            return self._number(index + 1, is_negative=token == "-")
        if kind is not TokenKind.OPEN:
            self._unexpected(index, expected)
        node = self._either(self._deeper(depth, index))
        self._close(index)
        return node

    def _number(self, index: int, *, is_negative: bool = False) -> _Literal:
        number = float(self._tokens[index])
        if number == math.inf:
            self._fail(index, *TOO_LARGE)
        return _Literal(-number if is_negative else number, index)

    def _close(self, opened: int, *, is_list: bool = False) -> None:
        if self._kinds[self._index] is not TokenKind.CLOSE:
            self._unexpected_operator(opened, is_list=is_list)
        self._index += 1

    def _deeper(self, depth: int, index: int) -> int:
        """Return the depth inside the parenthesis or NOT at a token."""
        if depth >= NESTING_MAX:
            problem = f"more than {NESTING_MAX} parentheses and NOTs inside each other"
            self._fail(index, problem, "write it flatter")
        return depth + 1

    def _as_predicate(self, node: Node) -> Predicate:
        """Return a node as a condition: an attribute is a flag, and TRUE, FALSE and NULL are conditions."""
        if isinstance(node, _Attribute):
            return OneOf(node.name, (True,))
        if not isinstance(node, _Literal):
            return node
        if node.value is None or isinstance(node.value, bool):
            return Known(node.value)
        hint = "compare an attribute with it: speed > 5"
        self._add_semantic_error(node.index, "a value alone is not a condition", hint)
        return _UNKNOWN

    def _compared(self, node: Node, first: int) -> Operand:
        """Return a node as an operand of a comparison; it begins at the token `first`."""
        if isinstance(node, _Attribute | _Literal):
            return node
        index = next(place for place in range(first, self._index) if self._kinds[place] in _OPERANDS)
        hint = "join conditions with AND and OR; compare attributes with values"
        self._add_semantic_error(index, "a condition cannot be compared", hint)
        return _Literal(None, index)

    def _comparison(self, left: Operand, operator: str, right: Operand) -> Predicate:
        if isinstance(right, _Attribute):
            if isinstance(left, _Literal):
                return self._comparison(right, _MIRRORED.get(operator, operator), left)
            hint = f"if {quoted(right.name)} is meant as a text, write '{right.name}'"
            self._add_semantic_error(right.index, "an attribute is compared with a value only", hint)
            return _UNKNOWN
        if isinstance(left, _Literal):
            return _compared_values(left.value, operator, right.value)
        literal = right.value
        if operator in _MIRRORED and literal is not None:
            return Order(left.name, operator, literal)
        if operator == "<=>":
            return _same(left.name, literal)
        if literal is None:
            return _UNKNOWN
        equal = OneOf(left.name, (literal,))
        return Not(equal) if operator in _UNEQUAL else equal

    def _add_semantic_error(self, index: int, problem: str, hint: str) -> None:
        """Keep the leftmost semantic error; it is raised after parsing, if there is no syntax error."""
        if self._semantic_error is None or index < self._semantic_error[0]:
            self._semantic_error = (index, problem, hint)

    def _fail(self, index: int, problem: str, hint: str = "") -> NoReturn:
        """Raise the error at a token, or one at the first token that no filter can have."""
        spans = token_spans(self._text)
        check_tokens(self._text, spans)
        after_last = min(len(self._text), spans[-1][1] + 1)
        position = spans[index][0] if index < len(spans) else after_last
        raise TextError(self._text, position, problem, hint)

    def _unexpected(self, index: int, expected: str) -> NoReturn:
        """Raise the error of a token where an operand, or a part of a condition, is expected."""
        kind = self._kinds[index]
        if kind is TokenKind.END:
            hint = "write the value that is missing" if expected == _VALUE else ""
            self._fail(index, f"{expected} was expected here, but the text ends", hint)
        if expected == _NUMBER:
            self._fail(index, *ARITHMETIC)
        token = self._tokens[index]
        hint = _HINTS.get(expected, "")
        if index and TokenKind.COMPARISON in (kind, self._kinds[index - 1]):
            meant = _DOUBLED.get(self._tokens[index - 1] + token)
            hint = f"did you mean {meant}?" if meant else ""
        self._fail(index, f"{expected} was expected here, not {quoted(token)}", hint)

    def _unexpected_operator(self, opened: int | None = None, *, is_list: bool = False) -> NoReturn:
        """Raise the error of the next token, which cannot follow an operand; `opened` is the last (."""
        index = self._index
        kind = self._kinds[index]
        if kind in _OPERANDS or kind in (TokenKind.SIGN, TokenKind.OPEN, TokenKind.INVALID):
            self._unexpected_operand(is_list=is_list)
        if kind is TokenKind.END:
            assert opened is not None, "the text may end here"
            self._fail(opened, "this parenthesis is not closed", "add a )")
        if is_list:
            self._fail(index, "a list holds single values only", _HINTS[_LIST])
        if kind is TokenKind.ESCAPE:
            self._fail(index, "ESCAPE belongs after the text of LIKE")
        if kind is TokenKind.COMMA:
            hint = "join conditions with AND or OR; a list comes after IN"
            self._fail(index, "a comma belongs into a list only", hint)
        if kind is TokenKind.CLOSE:
            self._fail(index, "there is no ( for this )", "leave it out, or add a (")
        hint = "join conditions with AND; for a range write speed BETWEEN 3 AND 5"
        self._fail(index, "a comparison cannot follow another", hint)

    def _unexpected_operand(self, *, is_list: bool) -> NoReturn:
        """Raise the error of the next token, which begins an operand where one has just ended."""
        index = self._index
        kind, token = self._kinds[index], self._tokens[index]
        kind_before, token_before = self._kinds[index - 1], self._tokens[index - 1]
        problem = f"{_OPERATOR} was expected here, not {quoted(token)}"
        hint = ""
        if kind is TokenKind.OPEN and kind_before is TokenKind.NAME:
            hint = "compare the attribute itself: speed > 5"
            self._fail(index - 1, "functions are not part of a filter", hint)
        if kind is TokenKind.SIGN:
            problem, hint = ARITHMETIC
        elif kind is TokenKind.TEXT and kind_before is TokenKind.TEXT:
            problem = "two texts stand side by side"
            hint = "put a comma between them, or double a quote that is meant: 'it''s'"
        elif is_list:
            problem, hint = "a comma or a ) was expected here", _HINTS[_LIST]
        elif kind is TokenKind.NAME:
            near = closest(name_of(token), _SUGGESTED)
            hint = f"did you mean {near}?" if near else "join conditions with AND or OR"
        elif kind_before is TokenKind.NAME and (near := closest(name_of(token_before), _SUGGESTED)):
            hint = f"did you mean {near} before it?"
        self._fail(index, problem, hint)


def _listed(attribute: str, literals: Sequence[float | str | bool | None]) -> Predicate:
    """Return `attribute IN (...)`: one part for each type in the list, and one for a NULL."""
    flags = tuple(literal for literal in literals if isinstance(literal, bool))
    texts = tuple(literal for literal in literals if isinstance(literal, str))
    numbers = tuple(literal for literal in literals if isinstance(literal, float))
    parts: list[Predicate] = [OneOf(attribute, kind) for kind in (numbers, texts, flags) if kind]
    if None in literals:
        parts.append(_UNKNOWN)
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def _same(attribute: str, literal: float | str | bool | None) -> Predicate:
    """Return `attribute <=> literal`: as `=`, but false where the attribute is missing."""
    if literal is None:
        return Missing(attribute)
    return And((OneOf(attribute, (literal,)), Missing(attribute, negated=True)))


def _compared_values(
    left: float | str | bool | None, operator: str, right: float | str | bool | None
) -> Known:
    """Return the result of comparing two values."""
    if operator == "<=>" and (left is None or right is None):
        return Known(left is right)
    if right is None:
        return _UNKNOWN
    if operator in _MIRRORED:
        return Known(Order("", operator, right).of(left))
    return Known(OneOf("", (right,), negated=operator in _UNEQUAL).of(left))
