"""Guarantees of subscribers and profiles of publishers as text (004, section 2).

Conditions as in the paper, joined by `and` or commas, in parentheses or not: `bandwidth = 20KB/s and
latency < 100ms`. `any` sets no condition: a bandwidth of `any` is that of the publisher's events. A
guarantee belongs to a subscription (`with QoS` in the paper), a profile to an advertisement (`with
QoSProfile`), which has only `bandwidth`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from betimes.language.quantities import read_duration_s, read_rate_kb_per_s
from betimes.language.suggestions import did_you_mean, quoted
from betimes.model.errors import TextError
from betimes.model.guarantees import Guarantee, Profile

TEXT_LENGTH_MAX = 300
ANY = "any"
EXAMPLE = "bandwidth = 20KB/s and latency < 100ms"
MOST = 1e9  # kilobytes per second, and seconds
ADVERTISEMENT_LENGTH_MAX = 600
ADVERTISED = "traffic/a4 = 15KB/s"

_SEPARATOR = re.compile(r",|\band\b", re.IGNORECASE)
_CONDITION = re.compile(r"\s*(?P<name>[^\s<>=]+)?\s*(?P<comparison>[<>=]+)?\s*(?P<value>.*?)\s*$", re.DOTALL)


class _Term(NamedTuple):
    comparisons: tuple[str, ...]
    read: Callable[[str], float]
    example: str


_BANDWIDTH = _Term(("=",), read_rate_kb_per_s, "bandwidth = 20KB/s")
_LATENCY = _Term(("<", "<="), read_duration_s, "latency < 100ms")
_GUARANTEE = {"bandwidth": _BANDWIDTH, "latency": _LATENCY}
_PROFILE = {"bandwidth": _BANDWIDTH}


def read_guarantee(text: str) -> Guarantee:
    """Return the guarantee in a text.

    >>> read_guarantee("bandwidth = 20KB/s and latency < 100ms")
    Guarantee(bandwidth_kb_per_s=20.0, latency_s_max=0.1)
    >>> read_guarantee("((bandwidth = any) and (latency < 100ms))")
    Guarantee(bandwidth_kb_per_s=None, latency_s_max=0.1)
    """
    found = _conditions(text, _GUARANTEE, EXAMPLE)
    latency_s = found.get("latency")
    return Guarantee(
        bandwidth_kb_per_s=found.get("bandwidth"),
        latency_s_max=math.inf if latency_s is None else latency_s,
    )


def read_profile(text: str) -> Profile:
    """Return the profile in a text.

    >>> read_profile("bandwidth = 1KB/s")
    Profile(bandwidth_kb_per_s=1.0)
    """
    found = _conditions(text, _PROFILE, _BANDWIDTH.example)
    bandwidth = found["bandwidth"]
    if bandwidth is None:
        position = text.lower().find(ANY)
        problem = "a publisher says what its events take"
        raise TextError(text, position, problem, f"write {_BANDWIDTH.example}")
    return Profile(bandwidth_kb_per_s=bandwidth)


def read_bandwidth_kb_per_s(text: str) -> float | None:
    """Return a bandwidth, alone as in a user property, or as a condition; None for `any`.

    >>> read_bandwidth_kb_per_s("20KB/s"), read_bandwidth_kb_per_s("any")
    (20.0, None)
    >>> read_bandwidth_kb_per_s("bandwidth = 20KB/s")
    20.0
    """
    return _alone(text, "bandwidth", _BANDWIDTH._replace(example="20KB/s"))


def read_advertisement(text: str) -> tuple[str, Profile]:
    """Return the topic of an advertisement, and the bandwidth of its events.

    >>> read_advertisement("traffic/a4 = 15KB/s")
    ('traffic/a4', Profile(bandwidth_kb_per_s=15.0))
    """
    topic, equals, bandwidth = text.rpartition("=")
    if len(text) > ADVERTISEMENT_LENGTH_MAX:
        raise TextError(text[:TEXT_LENGTH_MAX], TEXT_LENGTH_MAX, "this is too long", f"write {ADVERTISED}")
    if not equals or not topic.strip():
        raise TextError(text, 0, "a topic, = and a bandwidth were expected", f"write {ADVERTISED}")
    if "#" in topic or "+" in topic:
        raise TextError(text, 0, "one topic is advertised, without wildcards", "advertise each of them")
    if _is_rate(topic.rpartition("=")[2]):
        place = topic.rindex("=") if "=" in topic else 0
        raise TextError(text, place, "a topic was expected before one bandwidth", f"write {ADVERTISED}")
    place = len(text) - len(bandwidth.lstrip())
    kb_per_s = _value(text, place, bandwidth.strip(), _BANDWIDTH._replace(example=ADVERTISED))
    if kb_per_s is None:
        raise TextError(text, place, "a publisher says what its events take", f"write {ADVERTISED}")
    return topic.strip(), Profile(bandwidth_kb_per_s=kb_per_s)


def _is_rate(text: str) -> bool:
    try:
        read_rate_kb_per_s(text)
    except TextError:
        return False
    return True


def read_latency_s_max(text: str) -> float:
    """Return a bound on latency, alone or as a condition; inf for `any`.

    >>> read_latency_s_max("100ms"), read_latency_s_max("< 2s"), read_latency_s_max("any")
    (0.1, 2.0, inf)
    >>> read_latency_s_max("latency < 100ms")
    0.1
    """
    found = _alone(text, "latency", _LATENCY._replace(example="100ms"))
    return math.inf if found is None else found


def _conditions(text: str, terms: Mapping[str, _Term], example: str) -> dict[str, float | None]:
    """Return the value of each condition of a text; None for `any`."""
    if len(text) > TEXT_LENGTH_MAX:
        raise TextError(text[:TEXT_LENGTH_MAX], TEXT_LENGTH_MAX, "this is too long", f"write {example}")
    plain = _without_parentheses(text)
    if not plain.strip():
        raise TextError(text, 0, "a condition was expected here, but there is none", f"write {example}")
    if either := re.search(r"\bor\b", plain, re.IGNORECASE):
        raise TextError(text, either.start(), "all conditions hold together", "join them with and")
    found: dict[str, float | None] = {}
    for start, end in _pieces(plain):
        name, value = _condition(text, plain[start:end], start, terms, example)
        if name in found:
            raise TextError(text, start, f"there is a condition on {name} already", "say it once")
        found[name] = value
    return found


def _without_parentheses(text: str) -> str:
    """Return the text with blanks for its parentheses, which must come in pairs."""
    opened: list[int] = []
    for position, letter in enumerate(text):
        if letter == "(":
            opened.append(position)
        elif letter == ")":
            if not opened:
                raise TextError(text, position, "this parenthesis closes none", "leave it out")
            opened.pop()
    if opened:
        raise TextError(text, opened[-1], "this parenthesis is not closed", "write ) behind the condition")
    return text.replace("(", " ").replace(")", " ")


def _pieces(plain: str) -> list[tuple[int, int]]:
    """Return the start and the end of each condition."""
    separators = [found.span() for found in _SEPARATOR.finditer(plain)]
    starts = [0, *(end for _, end in separators)]
    ends = [*(start for start, _ in separators), len(plain)]
    return list(zip(starts, ends, strict=True))


def _condition(
    text: str, piece: str, start: int, terms: Mapping[str, _Term], example: str
) -> tuple[str, float | None]:
    found = _CONDITION.match(piece)
    assert found is not None, "all parts of a condition may be missing"
    if found["name"] is None:
        place = start + len(piece) - len(piece.lstrip())
        raise TextError(text, place, "a condition was expected here", f"write {example}")
    name, place = found["name"].lower(), start + found.start("name")
    if name not in terms:
        hint = did_you_mean(name, terms, "conditions")
        raise TextError(text, place, f"there is no condition on {quoted(name)}", hint)
    term = terms[name]
    if found["comparison"] not in term.comparisons:
        is_any = found["comparison"] == "=" and found["value"].lower() == ANY
        if not is_any:
            position = start + (
                found.end("name") if found["comparison"] is None else found.start("comparison")
            )
            allowed = " or ".join(term.comparisons)
            raise TextError(text, position, f"{allowed} was expected here", f"write {term.example}")
    return name, _value(text, start + found.start("value"), found["value"], term)


def _alone(text: str, name: str, term: _Term) -> float | None:
    """Return the only value in a text, with or without name and comparison before it."""
    before = re.match(rf"\s*(?:{name}(?=[\s<=]))?\s*(?:<=|<|=)?\s*", text, re.IGNORECASE)
    assert before is not None, "all of it may be missing"
    if further := _SEPARATOR.search(text):
        raise TextError(text, further.start(), f"nothing but {name} is said here", f"write {term.example}")
    return _value(text, before.end(), text[before.end() :], term)


def _value(text: str, start: int, written: str, term: _Term) -> float | None:
    """Return a value; a mistake in it is reported with its place in the whole text."""
    if written.strip().lower() == ANY:
        return None
    try:
        value = term.read(written)
    except TextError as error:
        raise TextError(text, start + error.position, error.problem, error.hint) from None
    if value <= 0:
        raise TextError(text, start, "this must be more than zero", f"write {term.example}")
    if value > MOST:
        raise TextError(text, start, "this is more than any network has", f"write {term.example}")
    return value
