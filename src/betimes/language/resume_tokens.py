"""Resume tokens, the text of `resume-after`: an id, and the numbers that the subscriber has above it.

`b1:100` is the text of `$id`: the subscriber has all that broker b1 numbered up to 100. `b1:100,3,5-7`
states that it also has 103 and 105 to 107.
"""

from __future__ import annotations

from betimes.model.errors import TextError
from betimes.model.positions import Have

ABOVE_MAX = 10_000  # numbers above the first
NUMBER_MAX = 2**63 - 1
HINT = "write the text of an $id, such as b1:100; or leave it out, or write now, for a fresh start"


def read_resume_token(text: str) -> tuple[str, Have]:
    """Return the origin, and what the subscriber has of it.

    >>> read_resume_token("b1:100,3,5-7")
    ('b1', Have(floor=100, above=frozenset({105, 106, 107, 103})))
    """
    origin, colon, numbers = text.rpartition(":")
    if not colon or not origin:
        raise TextError(text, 0, "resume-after must name a broker and a number", HINT)
    place = len(origin) + 1
    floor, *parts = numbers.split(",")
    known = _number(text, place, floor)
    above: set[int] = set()
    place += len(floor) + 1
    for part in parts:
        first, dash, last = part.partition("-")
        low = _number(text, place, first)
        high = _number(text, place + len(first) + 1, last) if dash else low
        if not 0 < low <= high or len(above) + high - low >= ABOVE_MAX:
            raise TextError(text, place, f"what is had behind an id are up to {ABOVE_MAX} numbers", HINT)
        above.update(range(known + low, known + high + 1))
        place += len(part) + 1
    return origin, Have(floor=known, above=frozenset(above))


def resume_token(origin: str, have: Have) -> str:
    """Return what a subscriber has of an origin as a text.

    >>> resume_token("b1", Have(floor=100, above=frozenset([103, 105, 106])))
    'b1:100,3,5-6'
    """
    spans: list[list[int]] = []
    for number in sorted(have.above):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        elif number > have.floor:
            spans.append([number, number])
    steps = [f"{low - have.floor}" + (f"-{high - have.floor}" if high > low else "") for low, high in spans]
    return f"{origin}:{','.join([str(have.floor), *steps])}"


def _number(text: str, place: int, digits: str) -> int:
    if not (digits.isascii() and digits.isdigit()) or len(digits) > len(str(NUMBER_MAX)):
        raise TextError(text, min(place, len(text)), "a number was expected here", HINT)
    number = int(digits)
    if number > NUMBER_MAX:
        raise TextError(text, place, f"no number is above {NUMBER_MAX}", HINT)
    return number
