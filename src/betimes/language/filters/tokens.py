"""The tokenizer of filters: one regular expression, a kind for every token, and the errors of single tokens.

A valid filter needs only the tokens and their kinds. Positions are computed when an error is reported, by
matching again. The expression gives no token back once it has matched, so the time is linear in the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto

from betimes.language.suggestions import quoted
from betimes.model.errors import TextError

TEXT_LENGTH_MAX = 10_000

Span = tuple[int, int]  # where a token begins, and the position after its last letter


class TokenKind(Enum):
    """The kind of a token."""

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
    INVALID = auto()  # no filter has such a token; `check_tokens` reports why
    END = auto()


_PUNCTUATION = r"()\[\]{}&^:,.\-=<>%!|+;/\\*~?@#'`\"$"
_LETTER = rf"[^\s{_PUNCTUATION}]"  # any that can be in a word, or in what looks like one
_TOKEN = re.compile(
    rf"""
      [rR](?:'[^']*'|"[^"]*")                                    # a raw text
    | \.?[0-9]+(?:\.[0-9]*)?(?:[eE](?:[+-]?[0-9]+)?)?{_LETTER}*  # a number, or something like 1st or 5L
    | {_LETTER}+
    | (?:'[^'\\]*+(?:\\.[^'\\]*+)*+')+                           # 'it''s' is one text
    | (?:"[^"\\]*+(?:\\.[^"\\]*+)*+")+
    | (?:`[^`]*+`)+
    | ['"`].*                                                    # a text or name that is not closed
    | --.* | /\*.*                                               # a comment, which is an error anyway
    | <=>|<=|<>|>=|==|=>|!=|->|&&|\|\||::
    | [{_PUNCTUATION}]
    """,
    re.VERBOSE | re.DOTALL,
)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LIKE_A_NUMBER = re.compile(r"[0-9.]+(?:e[+-]?[0-9]*)?(?:[lsydf]|bd)?", re.IGNORECASE)  # 5e, and Spark's 5L
_HEXADECIMAL = re.compile(r"0[xX][0-9a-fA-F]+")
_CURLY = re.compile("[‘’‚“”„´]")

_KEYWORDS: Mapping[str, TokenKind] = {
    **dict.fromkeys(("TRUE", "FALSE", "NULL"), TokenKind.CONSTANT),
    "AND": TokenKind.AND,
    "OR": TokenKind.OR,
    "NOT": TokenKind.NOT,
    "BETWEEN": TokenKind.BETWEEN,
    "IN": TokenKind.IN,
    "IS": TokenKind.IS,
    "LIKE": TokenKind.LIKE,
    "ESCAPE": TokenKind.ESCAPE,
}
_OPERATORS: Mapping[str, TokenKind] = {
    **dict.fromkeys(("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"), TokenKind.COMPARISON),
    **dict.fromkeys("+-", TokenKind.SIGN),
    "!": TokenKind.NOT,
    "(": TokenKind.OPEN,
    ")": TokenKind.CLOSE,
    ",": TokenKind.COMMA,
}

ARITHMETIC = ("arithmetic is not part of a filter", "compare an attribute with a value: speed > 5")
TOO_LARGE = ("this number is too large", "numbers go up to about 1.8e308")
_COMMENT = ("a comment is not part of a filter", "leave it out; for minus minus write - -")
_PATTERN = ("this kind of pattern is not part of a filter", "write LIKE 'prefix%'")
_STATEMENT = "a filter is one condition, without statements or subqueries"
_INVALID: Mapping[str, tuple[str, str]] = {
    ";": (_STATEMENT, "leave out the `;` and what follows"),
    "SELECT": (_STATEMENT, "list the values: kind IN ('car', 'bus')"),
    "WHERE": (_STATEMENT, "leave out the word WHERE"),
    "WITH": (_STATEMENT, "write only the condition: speed > 5"),
    "UNION": (_STATEMENT, "write only the condition: speed > 5"),
    "CASE": ("CASE is not part of a filter", "write the cases with AND and OR"),
    **dict.fromkeys(("*", "/", "%", "DIV"), ARITHMETIC),
    "&&": ("`&&` is not part of a filter", "write AND"),
    "&": ("`&` is not part of a filter", "write AND"),
    "||": ("`||` is not part of a filter", "write OR"),
    "|": ("`|` is not part of a filter", "write OR"),
    "=>": ("`=>` is not a comparison", "did you mean >=?"),
    "->": ("`->` is not a comparison", "did you mean >=?"),
    ".": ("an attribute has no parts", "put a name with a point in backticks: `engine.speed`"),
    **dict.fromkeys(("RLIKE", "REGEXP", "ILIKE", "GLOB"), _PATTERN),
    "ISNULL": ("ISNULL is not part of a filter", "write IS NULL"),
    "NOTNULL": ("NOTNULL is not part of a filter", "write IS NOT NULL"),
    "::": ("a cast is not part of a filter", "write the value as it is: 5"),
}

RESERVED_WORDS: Mapping[str, TokenKind] = {**dict.fromkeys(_INVALID, TokenKind.INVALID), **_KEYWORDS}
_DIGITS = frozenset("0123456789.")

_ESCAPE = r"\\(?:u([0-9a-fA-F]{4})|U(00(?:0[0-9a-fA-F]|10)[0-9a-fA-F]{4})|([01][0-7]{2})|(.))"
_ESCAPES: Mapping[str, re.Pattern[str]] = {
    quote: re.compile(rf"{quote}{quote}|{_ESCAPE}", re.DOTALL) for quote in "'\""
}
# A backslash before any other letter is dropped. Those of \% and \_ stay: they are for LIKE.
_ESCAPED_LETTERS: Mapping[str, str] = {
    "0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": r"\%", "_": r"\_",
}  # fmt: skip
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]|[\ud800-\udfff]")


class _Kinds(dict[str, TokenKind]):
    """The kind of every token. Operators and keywords are stored, all others computed."""

    def __missing__(self, token: str) -> TokenKind:
        first = token[0]
        if first in _DIGITS:
            return TokenKind.NUMBER if _NUMBER.fullmatch(token) else TokenKind.INVALID
        if first in "'\"`":
            return _kind_of_quoted(token)
        if _PLAIN_NAME.fullmatch(token):
            return RESERVED_WORDS.get(token.upper(), TokenKind.NAME)
        return TokenKind.TEXT if first in "rR" and token[-1] in "'\"" else TokenKind.INVALID


KINDS: Mapping[str, TokenKind] = _Kinds(
    {**_OPERATORS, **_KEYWORDS, **{word.lower(): kind for word, kind in _KEYWORDS.items()}}
)


def tokenize(text: str) -> tuple[list[str], list[TokenKind]]:
    """Return the tokens of a filter and their kinds; the last has the kind END. Time: linear.

    >>> tokenize("speed > 5")[0]
    ['speed', '>', '5', '']
    """
    if len(text) > TEXT_LENGTH_MAX or not text.isascii():
        _check_letters(text)
    tokens = _TOKEN.findall(text)
    kinds = [KINDS[token] for token in tokens]
    tokens.append("")
    kinds.append(TokenKind.END)
    return tokens, kinds


def token_spans(text: str) -> list[Span]:
    """Return the position of every token."""
    return [match.span() for match in _TOKEN.finditer(text)]


def check_tokens(text: str, spans: Sequence[Span]) -> None:
    """Raise a `TextError` at the first token that no filter can have."""
    if not spans:
        hint = "write a condition, such as speed > 50, or TRUE for everything"
        raise TextError(text, 0, "the filter is empty", hint)
    end_before, kind_before = -1, TokenKind.END
    for start, end in spans:
        token = text[start:end]
        kind = KINDS[token]
        is_part = (
            token[0] == "." and start == end_before and kind_before in (TokenKind.NAME, TokenKind.NUMBER)
        )
        if kind is TokenKind.INVALID or is_part:
            raise TextError(text, start, *(_INVALID["."] if is_part else _token_error(token)))
        if kind is TokenKind.NUMBER and float(token) == math.inf:
            raise TextError(text, start, *TOO_LARGE)
        end_before, kind_before = end, kind


def name_of(token: str) -> str:
    """Return the attribute's name that a token of the kind NAME stands for."""
    return token[1:-1].replace("``", "`") if token[0] == "`" else token


def text_of(token: str) -> str:
    r"""Return the text that a token of the kind TEXT stands for.

    >>> text_of("'it''s'"), text_of(r"'a\tb'"), text_of(r"r'a\tb'")
    ("it's", 'a\tb', 'a\\tb')
    """
    quote = token[0]
    if quote in "rR":
        return token[2:-1]
    inside = token[1:-1]
    if "\\" not in inside:
        return inside.replace(2 * quote, quote)
    return _SURROGATES.sub(_from_surrogates, _ESCAPES[quote].sub(_unescaped, inside))


def _unescaped(escape: re.Match[str]) -> str:
    short, long, octal, letter = escape.groups()
    if letter is not None:
        return _ESCAPED_LETTERS.get(letter, letter)
    if octal is not None:
        return chr(int(octal, 8))
    code = short or long
    return escape[0][0] if code is None else chr(int(code, 16))  # or a doubled quote


def _from_surrogates(found: re.Match[str]) -> str:
    """Return the letter of two UTF-16 surrogates; as in Java, one alone becomes a question mark."""
    pair = found[0]
    return "?" if len(pair) == 1 else pair.encode("utf-16", "surrogatepass").decode("utf-16")


def _kind_of_quoted(token: str) -> TokenKind:
    quote = token[0]
    is_closed = len(token) > 1 and token[-1] == quote
    if quote == "`":
        return TokenKind.NAME if is_closed and token[1:-1].strip() else TokenKind.INVALID
    if is_closed and "\\" in token:  # the last quote may be an escaped one
        is_closed = (len(token) - 1 - len(token[:-1].rstrip("\\"))) % 2 == 0
    return TokenKind.TEXT if is_closed else TokenKind.INVALID


def _check_letters(text: str) -> None:
    """Raise a `TextError` if a text is too long, or has half a letter in it."""
    if len(text) > TEXT_LENGTH_MAX and not text.isspace():
        shown = f"{text[:TEXT_LENGTH_MAX][-60:]} …"
        problem = f"a filter has at most {TEXT_LENGTH_MAX:,} letters, this one has {len(text):,}"
        raise TextError(shown, len(shown) - 1, problem, "split it into several subscriptions")
    surrogate = re.search("[\ud800-\udfff]", text)
    if surrogate:
        shown = "".join(letter if letter.isprintable() else "�" for letter in text)
        raise TextError(shown, surrogate.start(), "this is half a letter (a lone surrogate)")


def _token_error(token: str) -> tuple[str, str]:
    """Return the problem with a token of the kind INVALID, and a hint."""
    first = token[0]
    if token.upper() in _INVALID:
        return _INVALID[token.upper()]
    if first == "-":
        return _COMMENT
    if first == "/":
        is_closed = "*/" in token[2:]
        return (
            _COMMENT
            if is_closed
            else ("this comment is not closed", "end it with */, or better leave it out")
        )
    if first == "`" and token[1:].endswith("`"):
        return "this name is empty", "put the attribute's name between the backticks"
    if first == "`":
        return "this name is not closed", "end it with `"
    if first in "'\"":
        return ("this text is not closed", "end it with the quote it begins with; write 'it''s' for it's")
    if _HEXADECIMAL.fullmatch(token):
        return "numbers are written with decimal digits only", "write 31 for 0x1F"
    if _LIKE_A_NUMBER.fullmatch(token):
        return f"{quoted(token)} is not a number", "write plain digits, such as 5, 0.5 or 1e3"
    return f"{quoted(token)} is not part of a filter", _strange_hint(token)


def _strange_hint(token: str) -> str:
    if _CURLY.search(token):
        return "use straight quotes: 'car'"
    if token.lstrip(".")[:1].isdigit():
        return "write plain digits for a number, and put a name that begins with a digit in backticks"
    if re.search(r"\w", token):
        return "put a name with other than letters, digits and _ in backticks"
    return "write a condition such as speed > 50 AND kind = 'car'"
