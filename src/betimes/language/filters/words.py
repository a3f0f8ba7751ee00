"""Which words is a filter made of, and which of them have no place in one?

sqlglot splits the text as Spark SQL does. Here each token gets its part of speech, and whatever a filter
cannot have (functions come later, with the grammar) is refused with its place and a hint.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from betimes.language.suggestions import quoted
from betimes.model.errors import TextError

TEXT_LENGTH_MAX = 10_000


class Part(Enum):
    """A word's part of speech."""

    NAME = auto()
    NUMBER = auto()
    TEXT = auto()
    CONSTANT = auto()  # TRUE, FALSE, NULL
    SIGN = auto()
    COMPARISON = auto()
    AND = auto()
    OR = auto()
    NOT = auto()
    BETWEEN = auto()
    IN = auto()
    IS = auto()
    LIKE = auto()
    ESCAPE = auto()
    OPEN = auto()
    CLOSE = auto()
    COMMA = auto()


@dataclass(frozen=True, slots=True)
class Word:
    """A part of speech and the token it was read from; `text[start:end]` is what was written."""

    part: Part
    token: Token

    @property
    def start(self) -> int:
        """Return where it begins."""
        return self.token.start

    @property
    def end(self) -> int:
        """Return where it ends: the place after its last letter."""
        return self.token.end + 1


_PARTS: Mapping[TokenType, Part] = {
    TokenType.NUMBER: Part.NUMBER,
    TokenType.STRING: Part.TEXT,
    TokenType.RAW_STRING: Part.TEXT,
    TokenType.TRUE: Part.CONSTANT,
    TokenType.FALSE: Part.CONSTANT,
    TokenType.NULL: Part.CONSTANT,
    TokenType.DASH: Part.SIGN,
    TokenType.PLUS: Part.SIGN,
    TokenType.EQ: Part.COMPARISON,
    TokenType.NEQ: Part.COMPARISON,
    TokenType.LT: Part.COMPARISON,
    TokenType.LTE: Part.COMPARISON,
    TokenType.GT: Part.COMPARISON,
    TokenType.GTE: Part.COMPARISON,
    TokenType.NULLSAFE_EQ: Part.COMPARISON,
    TokenType.AND: Part.AND,
    TokenType.OR: Part.OR,
    TokenType.NOT: Part.NOT,
    TokenType.BETWEEN: Part.BETWEEN,
    TokenType.IN: Part.IN,
    TokenType.IS: Part.IS,
    TokenType.LIKE: Part.LIKE,
    TokenType.ESCAPE: Part.ESCAPE,
    TokenType.L_PAREN: Part.OPEN,
    TokenType.R_PAREN: Part.CLOSE,
    TokenType.COMMA: Part.COMMA,
    TokenType.IDENTIFIER: Part.NAME,
}

ARITHMETIC = "arithmetic is not part of a filter"
ARITHMETIC_HINT = "compare an attribute with a value: speed > 5"
_PATTERNS = (
    "this kind of pattern is not part of a filter",
    "write LIKE 'prefix%'",
)
_STATEMENT = "a filter is one condition, without statements or subqueries"
_REFUSED: Mapping[TokenType, tuple[str, str]] = {
    TokenType.SEMICOLON: (_STATEMENT, "leave out the `;` and what follows"),
    TokenType.SELECT: (_STATEMENT, "list the values: kind IN ('car', 'bus')"),
    TokenType.WHERE: (_STATEMENT, "leave out the word WHERE"),
    TokenType.WITH: (_STATEMENT, "write only the condition: speed > 5"),
    TokenType.UNION: (_STATEMENT, "write only the condition: speed > 5"),
    TokenType.CASE: ("CASE is not part of a filter", "write the cases with AND and OR"),
    TokenType.STAR: (ARITHMETIC, ARITHMETIC_HINT),
    TokenType.SLASH: (ARITHMETIC, ARITHMETIC_HINT),
    TokenType.MOD: (ARITHMETIC, ARITHMETIC_HINT),
    TokenType.DIV: (ARITHMETIC, ARITHMETIC_HINT),
    TokenType.DAMP: ("`&&` is not part of a filter", "write AND"),
    TokenType.AMP: ("`&` is not part of a filter", "write AND"),
    TokenType.DPIPE: ("`||` is not part of a filter", "write OR"),
    TokenType.PIPE: ("`|` is not part of a filter", "write OR"),
    TokenType.FARROW: ("`=>` is not a comparison", "did you mean >=?"),
    TokenType.ARROW: ("`->` is not a comparison", "did you mean >=?"),
    TokenType.DOT: ("an attribute has no parts", "put a name with a point in backticks: `engine.speed`"),
    TokenType.RLIKE: _PATTERNS,
    TokenType.ILIKE: _PATTERNS,
    TokenType.IRLIKE: _PATTERNS,
    TokenType.GLOB: _PATTERNS,
    TokenType.SIMILAR_TO: _PATTERNS,
    TokenType.ISNULL: ("ISNULL is not part of a filter", "write IS NULL"),
    TokenType.NOTNULL: ("NOTNULL is not part of a filter", "write IS NOT NULL"),
    TokenType.HEX_STRING: ("numbers are written with decimal digits only", "write 31 for 0x1F"),
    TokenType.DCOLON: ("a cast is not part of a filter", "write the value as it is: 5"),
}

_UNCLOSED = {"`": ("name", "end it with `"), "/": ("comment", "end it with */, or better leave it out")}
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_CURLY = re.compile("[‘’‚“”„´]")
_SPARK = Spark()


def read_words(text: str) -> list[Word]:
    """Return the words of a filter in their order, or raise a `TextError` at the first that cannot be one."""
    if not text.strip():
        raise TextError(
            text, 0, "the filter is empty", "write a condition, such as speed > 50, or TRUE for everything"
        )
    if len(text) > TEXT_LENGTH_MAX:
        shown = f"{text[:TEXT_LENGTH_MAX][-60:]} …"
        problem = f"a filter has at most {TEXT_LENGTH_MAX:,} letters, this one has {len(text):,}"
        raise TextError(shown, len(shown) - 1, problem, "split it into several subscriptions")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        shown = "".join(letter if letter.isprintable() else "�" for letter in text)
        raise TextError(shown, surrogate.start(), "this is half a letter (a lone surrogate)")
    tokens = _joined(text, _tokens(text))
    end = 0
    words: list[Word] = []
    for token in tokens:
        _refuse_comment(text, end, token.start)
        words.append(_word(text, token))
        end = token.end + 1
    _refuse_comment(text, end, len(text))
    return words


def _tokens(text: str) -> list[Token]:
    try:
        return list(_SPARK.tokenize(text))
    except TokenError as error:
        place = _unclosed(text)
        if place is None:
            place = min(error.end or 0, len(text))
            raise TextError(text, place, "the text cannot be read from here on") from None
        what, hint = _UNCLOSED.get(
            text[place], ("text", "end it with the quote it begins with; write 'it''s' for it's")
        )
        raise TextError(text, place, f"this {what} is not closed", hint) from None


def _unclosed(text: str) -> int | None:
    """Return where the quote, name or comment begins that never ends."""
    place = 0
    while place < len(text):
        if text[place] in "'\"`":
            whole = re.compile(
                r"`[^`]*`"
                if text[place] == "`"
                else rf"{text[place]}(?:\\.|[^\\{text[place]}])*{text[place]}",
                re.S,
            )
            found = whole.match(text, place)
            if found is None:
                return place
            place = found.end()
        elif text.startswith("/*", place):
            close = text.find("*/", place + 2)
            if close < 0:
                return place
            place = close + 2
        else:
            place += 1
    return None


def _joined(text: str, tokens: list[Token]) -> list[Token]:
    """Return the tokens with those made one that Spark reads as one: 'it''s', and .5"""
    joined: list[Token] = []
    for token in tokens:
        last = joined[-1] if joined else None
        touching = last is not None and last.end + 1 == token.start
        if last is None or not touching:
            joined.append(token)
        elif (
            last.token_type == token.token_type == TokenType.STRING and text[last.start] == text[token.start]
        ):
            joined[-1] = _spanning(TokenType.STRING, last.text + text[token.start] + token.text, last, token)
        elif last.token_type == TokenType.DOT and token.token_type == TokenType.NUMBER and _is_alone(joined):
            joined[-1] = _spanning(TokenType.NUMBER, f".{token.text}", last, token)
        else:
            joined.append(token)
    return joined


def _is_alone(tokens: list[Token]) -> bool:
    """Tell whether nothing touches the last token from the left that it might belong to (as in 1.2.3)."""
    if len(tokens) < 2 or tokens[-2].end + 1 != tokens[-1].start:
        return True
    return tokens[-2].token_type not in (TokenType.NUMBER, TokenType.VAR, TokenType.IDENTIFIER)


def _spanning(kind: TokenType, text: str, first: Token, last: Token) -> Token:
    return Token(kind, text, line=first.line, col=first.col, start=first.start, end=last.end)


def _refuse_comment(text: str, start: int, end: int) -> None:
    """Raise where something that is no space stands between two tokens: sqlglot skips comments."""
    between = text[start:end]
    if between.strip():
        place = start + len(between) - len(between.lstrip())
        raise TextError(
            text, place, "a comment is not part of a filter", "leave it out; for minus minus write - -"
        )


def _word(text: str, token: Token) -> Word:
    kind = token.token_type
    written = text[token.start : token.end + 1]
    if kind == TokenType.NUMBER:
        return Word(Part.NUMBER, _checked_number(text, token, written))
    if kind == TokenType.IDENTIFIER and not token.text.strip():
        raise TextError(
            text, token.start, "this name is empty", "put the attribute's name between the backticks"
        )
    part = _PARTS.get(kind)
    if part is not None:
        return Word(part, token)
    if kind in _REFUSED:
        raise TextError(text, token.start, *_REFUSED[kind])
    if _PLAIN_NAME.fullmatch(written):
        # A quoted identifier: sqlglot then never takes it for one of its own words (date, left, interval).
        name = Token(
            TokenType.IDENTIFIER, written, line=token.line, col=token.col, start=token.start, end=token.end
        )
        return Word(Part.NAME, name)
    raise TextError(text, token.start, f"{quoted(written)} is not part of a filter", _strange_hint(written))


def _checked_number(text: str, token: Token, written: str) -> Token:
    """Return the number's token, refusing what only looks like one (5e) or is too large."""
    try:
        number = float(written)
    except ValueError:
        problem = f"{quoted(written)} is not a number"
        raise TextError(text, token.start, problem, "write plain digits, such as 5, 0.5 or 1e3") from None
    if number in (float("inf"), float("-inf")):
        raise TextError(text, token.start, "this number is too large", "numbers go up to about 1.8e308")
    return token


def _strange_hint(written: str) -> str:
    if _CURLY.search(written):
        return "use straight quotes: 'car'"
    if written[:1].isdigit():
        return "write plain digits for a number, and put a name that begins with a digit in backticks"
    if re.search(r"\w", written):
        return "put a name with other than letters, digits and _ in backticks"
    return "write a condition such as speed > 50 AND kind = 'car'"
