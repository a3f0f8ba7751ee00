"""`betimes filter`: explain a content filter, and try events on it."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from betimes.language.filters.parse import parse_filter
from betimes.model.errors import SettingError
from betimes.model.events import Value, number_reading
from betimes.model.filters import Box, Constraint, Filter, Flag, Interval, Presence, TextRange, TextSet
from betimes.terminal.terminal import JsonOption, examples, print_facts, print_json, print_table

TEXTS_SHOWN = 8

EXAMPLES = examples(
    "betimes filter \"speed > 50 AND kind = 'car'\"",
    "betimes filter \"speed BETWEEN 30 AND 50 OR kind IN ('bus', 'tram')\" --event speed=61,kind=bus",
    'betimes filter "kind IS NULL" --event speed=61 --json',
)


def filter_command(
    text: Annotated[str, typer.Argument(help="The filter: a predicate as in a WHERE clause of Spark SQL.")],
    event: Annotated[
        list[str] | None,
        typer.Option("--event", help="An event to try, as name=value,name=value. May be repeated."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Explain a content filter: its boxes, and whether events match it.

    Use it to check a filter before you subscribe. A filter is a union of boxes; an event matches if it meets
    every constraint of at least one box. A missing attribute is NULL, as in SQL.
    """
    parsed = parse_filter(text)
    facts = filter_facts(parsed, [read_attributes(each) for each in event or []])
    if as_json:
        print_json(facts)
        return
    print_facts("filter", {"text": text, "attributes": ", ".join(sorted(parsed.attributes())) or "none"})
    if not parsed.boxes:
        print_facts("", {"boxes": "none: nothing can match this filter"})
    rows = [(number, describe_box(box)) for number, box in enumerate(parsed.boxes, 1)]
    print_table("boxes: an event in any of them matches", ["box", "all of"], rows, numbers=["box"])
    if event:
        matches = [each["matches"] for each in facts["events"]]
        print_table("events", ["event", "matches"], list(zip(event, matches, strict=True)))


def filter_facts(parsed: Filter, events: list[dict[str, Value]]) -> dict[str, Any]:
    """Return what --json prints, with whether the filter matches each of these events."""
    return {
        "text": parsed.text,
        "attributes": sorted(parsed.attributes()),
        "boxes": [
            [
                {"attribute": name, "constraint": describe(name, constraint)}
                for name, constraint in box.constraints
            ]
            for box in parsed.boxes
        ],
        "events": [{"attributes": each, "matches": parsed.matches(each)} for each in events],
    }


def read_attributes(text: str) -> dict[str, Value]:
    """Return the attributes in `name=value,name=value`; a value that parses as a number is one.

    >>> read_attributes("speed=61, kind=car")
    {'speed': 61.0, 'kind': 'car'}
    """
    attributes: dict[str, Value] = {}
    for part in text.split(",") if text.strip() else []:
        name, equals, value = part.strip().partition("=")
        if not equals or not name.strip():
            problem = f"{part.strip()!r} is not name=value"
            raise SettingError("--event", text, problem, "write --event speed=61,kind=car")
        number = number_reading(value.strip())
        attributes[name.strip()] = value.strip() if number is None else number
    return attributes


def describe_box(box: Box) -> str:
    """Return a box as readable text."""
    return " and ".join(describe(name, constraint) for name, constraint in box.constraints) or "anything"


def describe(name: str, constraint: Constraint) -> str:
    """Return a constraint on the attribute as readable text.

    >>> describe("speed", Interval(50, 80, low_inside=False))
    '50 < speed <= 80'
    """
    match constraint:
        case Interval():
            return _describe_interval(name, constraint)
        case TextSet(texts=texts, excluded=excluded):
            return f"{name} is {'a text outside' if excluded else 'in'} {_listed(texts)}"
        case TextRange(low=low, high=high, excluded=excluded):
            ends = f"{name} is a text {'from' if constraint.low_inside else 'after'} {low!r}"
            if high is not None:
                ends += f" {'to' if constraint.high_inside else 'to before'} {high!r}"
            return ends + (f" except {_listed(excluded)}" if excluded else "")
        case Flag(value=value):
            return f"{name} is {'true' if value else 'false'}"
        case Presence(present=present):
            return f"{name} is {'there' if present else 'missing'}"


def _describe_interval(subject: str, interval: Interval) -> str:
    low, high = interval.low, interval.high
    if low == high:
        return f"{subject} = {low:g}"
    if math.isinf(low) and math.isinf(high):
        return f"{subject} is a number"
    left = "" if math.isinf(low) else f"{low:g} {'<=' if interval.low_inside else '<'} "
    right = "" if math.isinf(high) else f" {'<=' if interval.high_inside else '<'} {high:g}"
    return f"{left}{subject}{right}"


def _listed(texts: frozenset[str]) -> str:
    shown = [repr(text) for text in sorted(texts)[:TEXTS_SHOWN]]
    more = f", and {len(texts) - TEXTS_SHOWN} more" if len(texts) > TEXTS_SHOWN else ""
    return "{" + ", ".join(shown) + more + "}"
