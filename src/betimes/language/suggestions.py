"""Suggestions for a misspelled word."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

LISTED_MAX = 12
WORDS_COMPARED_MAX = 2_000  # comparing is slow; in a large file the list of words has to do
WORD_LENGTH_MAX = 60
LIKENESS = 0.6  # the ratio of difflib for two words


def closest(word: str, known: Iterable[str], likeness: float = LIKENESS) -> str | None:
    """Return the known word most similar to this one, or None if none is near.

    >>> closest("sped", ["speed", "kind"]), closest("colour", ["speed", "kind"])
    ('speed', None)
    """
    if len(word) > WORD_LENGTH_MAX:
        return None
    by_small_letters = {candidate.lower(): candidate for candidate in islice(known, WORDS_COMPARED_MAX)}
    found = get_close_matches(word.lower(), by_small_letters, n=1, cutoff=likeness)
    return by_small_letters[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], kind: str) -> str:
    """Return a hint: the closest known word, or else the list of words of that kind.

    >>> did_you_mean("sped", ["speed", "kind"], "attributes")
    'did you mean speed?'
    >>> did_you_mean("colour", ["speed", "kind"], "attributes")
    'known attributes: kind, speed'
    """
    words = list(known)
    near = closest(word, words)
    if near is not None:
        return f"did you mean {near}?"
    if not words:
        return f"there are no {kind}"
    shown = ", ".join(sorted(words)[:LISTED_MAX])
    more = f" and {len(words) - LISTED_MAX} more" if len(words) > LISTED_MAX else ""
    return f"known {kind}: {shown}{more}"


def near_or_listed(word: str, known: Iterable[str]) -> str:
    """Return a hint: the closest known word, if one is near, and all of them.

    >>> near_or_listed("sped", ["speed", "kind"]), near_or_listed("colour", ["speed", "kind"])
    ('did you mean speed? (one of speed, kind)', 'one of speed, kind')
    """
    words = list(known)
    near, listed = closest(word, words), f"one of {', '.join(words)}"
    return listed if near is None else f"did you mean {near}? ({listed})"


def quoted(word: str) -> str:
    """Return the word for use inside a message: short, on one line."""
    shown = word if len(word) <= WORD_LENGTH_MAX else f"{word[: WORD_LENGTH_MAX - 1]}…"
    return "`" + "".join(letter if letter.isprintable() else "�" for letter in shown) + "`"
