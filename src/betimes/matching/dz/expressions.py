"""dz-expressions: bit strings that name parts of the event space, and their algebra (002).

The space is halved again and again, one dimension after the other; each halving adds a bit: `0` for the low
half, `1` for the high one, `*` (section 5.2) for both. The empty expression names the whole space. An
expression is stored as one integer with a leading 1, as in a heap: the root is 1, the halves of h are 2h
and 2h + 1. So coarsening is a shift, and covering is a shift and a comparison. A second integer marks the
places of wildcards.

Without wildcards, expressions that overlap contain one another. With wildcards they need not (`0` and
`*0`), so there are two questions: `covers` and `overlaps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from betimes.model.errors import TextError

LENGTH_MAX = 1024
WILDCARD = "*"
EMPTY_TEXT = "ε"


class Dz(NamedTuple):
    """An expression in its canonical form: no bit under a wildcard, no wildcard at the end."""

    bits: int = 1
    stars: int = 0

    @property
    def length(self) -> int:
        """Return the number of halvings."""
        return self.bits.bit_length() - 1

    @property
    def volume(self) -> float:
        """Return the share of the space that it names."""
        return 2.0 ** (self.stars.bit_count() - self.length)

    def __str__(self) -> str:
        """Return it as text; the whole space is ε."""
        return places_of(self) or EMPTY_TEXT


WHOLE = Dz()
DzSet = tuple[Dz, ...]  # sorted, as `merged` returns it


def places_of(dz: Dz) -> str:
    """Return the expression place by place, as text; empty for the whole space."""
    digits = f"{dz.bits:b}"[1:]
    if not dz.stars:
        return digits
    return "".join(WILDCARD if dz.stars >> place & 1 else digits[-1 - place] for place in range(dz.length))[
        ::-1
    ]


def read_dz(text: str) -> Dz:
    """Return the expression in a text.

    >>> str(read_dz("*0*0")), str(read_dz("01**")), read_dz("ε") == WHOLE
    ('*0*0', '01', True)
    """
    dz = WHOLE
    if text == EMPTY_TEXT:
        return dz
    for place, digit in enumerate(text):
        if digit not in "01*":
            raise TextError(text, place, "a dz-expression has 0, 1 and * only", "for example 01*1")
        if place >= LENGTH_MAX:
            raise TextError(text, place, f"a dz-expression has at most {LENGTH_MAX} places")
        dz = Dz(2 * dz.bits + (digit == "1"), 2 * dz.stars + (digit == WILDCARD))
    return stripped(dz)


def stripped(dz: Dz) -> Dz:
    """Return it without wildcards at its end, which have no effect."""
    if not dz.stars & 1:
        return dz
    ends = (~dz.stars & (dz.stars + 1)).bit_length() - 1
    return Dz(dz.bits >> ends, dz.stars >> ends)


def shortened(dz: Dz, length: int) -> Dz:
    """Return the first `length` places: the same or a coarser expression."""
    over = max(dz.length - length, 0)
    return stripped(Dz(dz.bits >> over, dz.stars >> over))


def coarser(dz: Dz) -> Dz:
    """Return the expression with one halving less; the whole space stays the same."""
    return shortened(dz, dz.length - 1) if dz.length else dz


def halves(dz: Dz) -> tuple[Dz, Dz]:
    """Return the two expressions with one halving more."""
    return Dz(2 * dz.bits, 2 * dz.stars), Dz(2 * dz.bits + 1, 2 * dz.stars)


def covers(one: Dz, other: Dz) -> bool:
    """Return whether this one names all that the other names (other ≺ one).

    >>> covers(read_dz("0*1"), read_dz("0110")), covers(read_dz("0"), read_dz("*0"))
    (True, False)
    """
    bits, stars = one
    other_bits, other_stars = other
    over = other_bits.bit_length() - bits.bit_length()
    if over < 0:  # this one has a bit at a place where the other has none
        return False
    differs = ((other_bits >> over) ^ bits) | (other_stars >> over)
    return not differs & ~stars


def overlaps(one: Dz, other: Dz) -> bool:
    """Return whether both have a part in common.

    >>> overlaps(read_dz("0"), read_dz("*0")), overlaps(read_dz("01"), read_dz("*0"))
    (True, False)
    """
    bits, stars = one
    other_bits, other_stars = other
    over = bits.bit_length() - other_bits.bit_length()
    if over > 0:
        bits, stars = bits >> over, stars >> over
    elif over < 0:
        other_bits, other_stars = other_bits >> -over, other_stars >> -over
    return not (bits ^ other_bits) & ~(stars | other_stars)


def merged(expressions: Iterable[Dz], *, wildcards: bool = False) -> DzSet:
    """Return the same part of the space with fewer expressions: none covered, no two that are one.

    Without wildcards the result is the unique shortest set. With `wildcards`, any two that differ at one
    place become one with `*` there; the result depends on the given set only, but another set for the same
    part may give another result.

    >>> [str(dz) for dz in merged(map(read_dz, ("001", "011")), wildcards=True)]
    ['0*1']
    >>> [str(dz) for dz in merged(map(read_dz, ("000", "001", "01", "0110")))]
    ['0']
    """
    kept = set(map(stripped, expressions))
    if not wildcards and not any(dz.stars for dz in kept):
        return _merged_plainly([dz.bits for dz in kept])
    while True:
        pairs = _siblings(kept, wildcards=wildcards)
        if not pairs:
            break
        for one, other, both in pairs:
            if one in kept and other in kept:
                kept -= {one, other}
                kept.add(both)
    return uncovered(kept)


def _merged_plainly(expressions: list[int]) -> DzSet:
    """Return the shortest set without wildcards: each is merged with those before it."""
    longest = max(expressions, default=1).bit_length()
    found: list[int] = []
    # in the order of the space, a wider one before its parts
    for each in sorted(expressions, key=lambda bits: (bits << longest - bits.bit_length(), bits)):
        bits = each
        if found and bits >> max(bits.bit_length() - found[-1].bit_length(), 0) == found[-1]:
            continue
        while found and bits & 1 and found[-1] == bits - 1:
            bits = found.pop() >> 1
        found.append(bits)
    return tuple([Dz(bits) for bits in found])


def _siblings(kept: set[Dz], *, wildcards: bool) -> list[tuple[Dz, Dz, Dz]]:
    """Return pairs that together are one expression, with that one: the last places first."""
    pairs = []
    for dz in sorted(kept):
        places = dz.length if wildcards else min(dz.length, 1)
        for place in range(places):
            mark = 1 << place
            other = Dz(dz.bits | mark, dz.stars)
            if not (dz.bits | dz.stars) & mark and other in kept:
                pairs.append((place, dz, other, stripped(Dz(dz.bits, dz.stars | mark))))
    return [(one, other, both) for _, one, other, both in sorted(pairs)]


def uncovered(expressions: Iterable[Dz]) -> DzSet:
    """Return those that no other one covers, sorted."""
    kept: list[Dz] = []
    of_prefix: set[Dz] = set()
    with_stars: list[Dz] = []
    for dz in sorted(set(expressions), key=lambda dz: (dz.length, -dz.stars.bit_count(), dz)):
        plainly = not dz.stars and any(Dz(dz.bits >> cut) in of_prefix for cut in range(dz.length + 1))
        among = kept if dz.stars else with_stars
        if not plainly and not any(covers(each, dz) for each in among):
            kept.append(dz)
            if dz.stars:
                with_stars.append(dz)
            else:
                of_prefix.add(dz)
    return tuple(sorted(kept, key=places_of))


def coarsened(expressions: Iterable[Dz], count_max: int) -> DzSet:
    """Return at most `count_max` expressions that cover all of these, with little else; greedy.

    Each step replaces expressions with a common beginning by that beginning: the one that adds least volume
    for each expression saved. One is always enough: the whole space.

    >>> [str(dz) for dz in coarsened(map(read_dz, ("001", "011")), 1)]
    ['0']
    """
    if count_max < 1:
        raise ValueError(f"{count_max} expressions cannot cover anything")
    kept = list(merged(expressions))
    while len(kept) > count_max:
        # equal leading places of each expression and the next; they are sorted
        shared = [_alike(one, other) for one, other in pairwise(map(places_of, kept))]
        best = min(range(len(shared)), key=lambda step: _step_cost(kept, shared, step))
        first, stop = _run(shared, best)
        step = shortened(kept[first], shared[best])
        kept = list(merged([*kept[:first], step, *kept[stop:]]))
    return tuple(kept)


def _alike(one: str, other: str) -> int:
    for place, (digit, other_digit) in enumerate(zip(one, other, strict=False)):
        if digit != other_digit:
            return place
    return min(len(one), len(other))


def _run(shared: list[int], step: int) -> tuple[int, int]:
    """Return the first of those that begin like the two at this step, and the place after the last."""
    first, stop = step, step + 1
    while first > 0 and shared[first - 1] >= shared[step]:
        first -= 1
    while stop < len(shared) and shared[stop] >= shared[step]:
        stop += 1
    return first, stop + 1


def _step_cost(kept: list[Dz], shared: list[int], step: int) -> tuple[float, int, int]:
    """Return what a step adds for each expression it saves; ties go to the longer one, then the first."""
    first, stop = _run(shared, step)
    added = shortened(kept[first], shared[step]).volume - sum(dz.volume for dz in kept[first:stop])
    return added / (stop - first - 1), -shared[step], first
