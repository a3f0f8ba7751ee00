"""Which filters and events shall be tried? Random ones, from small pools, so that they meet often.

`filters()` and `events()` mix all types and attributes. `typed_filters()` and `typed_events()` keep to one
type for each attribute, as a DataFrame does, so that Spark can be asked the same question; there `zip` is
a text whose values all read as whole numbers.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from betimes.model.events import Value

NUMBER_NAMES = ("speed", "load")
TEXT_NAMES = ("kind", "place name")
DIGITS_NAMES = ("zip",)
FLAG_NAMES = ("open",)
NAMES = (*NUMBER_NAMES, *TEXT_NAMES, *DIGITS_NAMES, *FLAG_NAMES)

NUMBERS = (-2.5, -1.0, 0.0, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 1e-7, 1e12)
TEXTS = (
    "",
    "a",
    "ab",
    "abc",
    "abd",
    "b",
    "B",
    "5",
    "5.0",
    "10",
    "true",
    "TRUE",
    "it's",
    "a\\b",
    "10%",
    "a_b",
    "é",
    "😀",
    "\ud7ff",
)
DIGITS = ("5", "10", "-1", "007", "2")

numbers: SearchStrategy[float] = st.sampled_from(NUMBERS) | st.floats(
    allow_nan=False, allow_infinity=False, width=32
).map(lambda number: number + 0.0)
texts: SearchStrategy[str] = st.sampled_from(TEXTS) | st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4
)
digits: SearchStrategy[str] = st.sampled_from(DIGITS)
flags: SearchStrategy[bool] = st.booleans()
values: SearchStrategy[Value] = st.none() | numbers | texts | flags


def written_name(name: str) -> str:
    """Return an attribute's name as a filter has it."""
    return name if name.isidentifier() else f"`{name}`"


def written_number(number: float) -> str:
    """Return a number as a filter has it; whole ones without a point."""
    return f"{number:.0f}" if number.is_integer() and abs(number) < 1e9 else repr(number)


def written_text(text: str) -> str:
    """Return a text as a filter has it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def written_pattern(prefix: str, tail: str) -> str:
    """Return a LIKE pattern for a prefix (tail `%`) or for just this text (no tail)."""
    escaped = "".join(f"\\{letter}" if letter in "\\%_" else letter for letter in prefix)
    return written_text(escaped + tail)


def written_flag(flag: bool) -> str:
    """Return a flag as a filter has it."""
    return "TRUE" if flag else "FALSE"


number_literals = numbers.map(written_number)
text_literals = texts.map(written_text)
flag_literals = flags.map(written_flag)
digits_literals = digits.map(written_text)
any_literals = number_literals | text_literals | flag_literals
patterns = st.builds(written_pattern, texts, st.sampled_from(["%", "%", "%%", ""]))

_OPERATORS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")


def comparisons(name: str, literals: SearchStrategy[str]) -> SearchStrategy[str]:
    """Return conditions on one attribute with literals of its type."""
    own = written_name(name)
    operators = st.sampled_from(_OPERATORS)
    listed = st.lists(literals | st.just("NULL"), min_size=1, max_size=4).map(", ".join)
    optional_not = st.sampled_from(["", "NOT "])
    return st.one_of(
        st.builds(lambda operator, literal: f"{own} {operator} {literal}", operators, literals),
        st.builds(lambda operator, literal: f"{literal} {operator} {own}", operators, literals),
        st.builds(
            lambda no, low, high: f"{own} {no}BETWEEN {low} AND {high}", optional_not, literals, literals
        ),
        st.builds(lambda no, items: f"{own} {no}IN ({items})", optional_not, listed),
        st.builds(lambda no: f"{own} IS {no}NULL", optional_not),
        st.builds(lambda operator: f"{own} {operator} NULL", operators),
    )


def likenesses(name: str) -> SearchStrategy[str]:
    """Return LIKE and NOT LIKE on one attribute."""
    own = written_name(name)
    return st.builds(lambda no, pattern: f"{own} {no}LIKE {pattern}", st.sampled_from(["", "NOT "]), patterns)


def truths(name: str) -> SearchStrategy[str]:
    """Return conditions that only a flag takes."""
    own = written_name(name)
    return st.sampled_from(
        [own, f"{own} IS TRUE", f"{own} IS NOT TRUE", f"{own} IS FALSE", f"{own} IS NOT FALSE"]
    )


def combined(conditions: SearchStrategy[str], leaves_max: int = 8) -> SearchStrategy[str]:
    """Return conditions joined by AND, OR, NOT, with parentheses where they are needed or not."""

    def join(parts: SearchStrategy[str]) -> SearchStrategy[str]:
        wrapped = st.builds(lambda part: f"({part})", parts)
        return st.one_of(
            st.builds(
                lambda word, items: f" {word} ".join(items),
                st.sampled_from(["AND", "OR", "and", "or"]),
                st.lists(wrapped, min_size=2, max_size=4),
            ),
            st.builds(
                lambda one, word, other: f"{one} {word} {other}", parts, st.sampled_from(["AND", "OR"]), parts
            ),
            st.builds(lambda part: f"NOT ({part})", parts),
            st.builds(lambda part: f"NOT {part}", parts),
        )

    return st.recursive(conditions | st.sampled_from(["TRUE", "FALSE", "NULL"]), join, max_leaves=leaves_max)


def conditions() -> SearchStrategy[str]:
    """Return conditions that compare any attribute with anything."""
    return st.one_of(
        *(comparisons(name, any_literals) for name in NAMES),
        *(likenesses(name) for name in NAMES),
        *(truths(name) for name in NAMES),
    )


def typed_conditions() -> SearchStrategy[str]:
    """Return conditions that fit the attributes' types, so that Spark's ANSI mode takes them."""
    whole_numbers = st.sampled_from(["5", "7", "-1", "100"])
    return st.one_of(
        *(comparisons(name, pool) for name in NUMBER_NAMES for pool in (number_literals, digits_literals)),
        *(comparisons(name, text_literals) for name in TEXT_NAMES),
        *(comparisons(name, pool) for name in DIGITS_NAMES for pool in (digits_literals, whole_numbers)),
        *(comparisons(name, flag_literals) for name in FLAG_NAMES),
        *(likenesses(name) for name in (*TEXT_NAMES, *DIGITS_NAMES)),
        *(truths(name) for name in FLAG_NAMES),
    )


def filters(leaves_max: int = 8) -> SearchStrategy[str]:
    """Return the texts of filters over any attributes and types."""
    return combined(conditions(), leaves_max)


def typed_filters(leaves_max: int = 8) -> SearchStrategy[str]:
    """Return the texts of filters that fit `typed_events`."""
    return combined(typed_conditions(), leaves_max)


def events() -> SearchStrategy[dict[str, Value]]:
    """Return the attributes of events: any name may be missing, or NULL, or of any type."""
    return st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, values))


def typed_events() -> SearchStrategy[dict[str, Value]]:
    """Return the attributes of events as rows of a table: every name there, of its type or NULL."""
    pools: dict[str, SearchStrategy[Value]] = {
        **dict.fromkeys(NUMBER_NAMES, st.none() | numbers),
        **dict.fromkeys(TEXT_NAMES, st.none() | texts),
        **dict.fromkeys(DIGITS_NAMES, st.none() | digits),
        **dict.fromkeys(FLAG_NAMES, st.none() | flags),
    }
    return st.fixed_dictionaries(pools)
