"""How long does it take to parse a filter, and to refuse a hostile one?

Three groups: *plain* filters (comparisons joined by AND, as programs write them), *complex* ones, and
*hostile* texts of nearly the maximal length. No result comes from the cache of `parse_filter`. If sqlglot is
installed, it is measured as the peer: it ends with a syntax tree, where Betimes goes on to the boxes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from rich.console import Console
from rich.table import Table

from betimes.language.filters.boxes import BOXES_MAX
from betimes.language.filters.parse import parse_filter, parse_uncached
from betimes.model.errors import TextError

GROUPS: Mapping[str, Mapping[str, str]] = {
    "plain": {
        "one comparison": "speed > 50",
        "two comparisons": "speed > 50 AND kind = 'car'",
        "a range and two": "speed BETWEEN 10 AND 20.5 AND kind = 'car' AND lane <= -3",
    },
    "complex": {
        "OR": "speed BETWEEN 30 AND 50 OR speed IS NULL",
        "IN and NOT": "kind IN ('car', 'bus') AND NOT (speed < 20 OR closed)",
        "LIKE": "road LIKE 'ring%' AND road NOT LIKE 'ring-east%'",
        "four boxes": "(a = 1 OR b = 1) AND (c = 1 OR d = 1)",
    },
    "hostile": {
        "9,999 parentheses": "(" * 9_999,
        "2,499 NOTs": "NOT " * 2_499 + "a",
        "700 ORs": " OR ".join(f"a{number} = 1" for number in range(700)),
        "1,400 equal ORs": " OR ".join(["a=1"] * 1_400),
        "2^200 boxes": " AND ".join(f"(a{number} = 1 OR b{number} = 2)" for number in range(200)),
        "2^500 boxes": " AND ".join(f"a{number} <> 1" for number in range(500)),
        "a list of 4,900": "a IN (" + ",".join(["1"] * 4_900) + ")",
        "escaped quotes": "a = '" + "\\'" * 4_990,
        "backticks": "`" * 9_999,
        "wildcards": "a LIKE '" + "%" * 9_900 + "x'",
        "a megabyte": "speed > 5 AND " * 75_000,
    },
}


def best_us(action: Callable[[], object], repeats: int) -> float:
    """Return the shortest time of an action, in microseconds; an error is a result too."""
    times_s = []
    for _ in range(repeats):
        start = time.perf_counter()
        with suppress(Exception):  # the peer has errors of its own
            action()
        times_s.append(time.perf_counter() - start)
    return min(times_s) * 1e6


def outcome(text: str) -> str:
    try:
        boxes = parse_filter(text).boxes
    except TextError as error:
        return error.problem
    return f"{len(boxes)} {'box' if len(boxes) == 1 else 'boxes'}"


def peer() -> Callable[[str], object] | None:
    """Return sqlglot's parser for Spark SQL, if it is installed."""
    try:
        sqlglot = importlib.import_module("sqlglot")
    except ImportError:
        return None
    return lambda text: sqlglot.parse_one(text, dialect="spark")


def measure(repeats: int) -> list[dict[str, object]]:
    """Return one row for each filter."""
    other = peer()
    rows: list[dict[str, object]] = []
    for group, texts in GROUPS.items():
        count = 5 if group == "hostile" else repeats
        for name, text in texts.items():
            row: dict[str, object] = {"group": group, "filter": name, "outcome": outcome(text)}
            row["us"] = best_us(lambda text=text: parse_uncached(text, BOXES_MAX), count)  # type: ignore[misc]
            if other is not None and group != "hostile":  # sqlglot recurses: hostile texts may crash it
                row["sqlglot_us"] = best_us(lambda text=text: other(text), count)  # type: ignore[misc]
            rows.append(row)
    return rows


def show(rows: Sequence[Mapping[str, object]]) -> None:
    table = Table(title="Parsing one filter (shortest time, µs)")
    for name in ("group", "filter", "outcome"):
        table.add_column(name)
    for name in ("Betimes", "sqlglot"):
        table.add_column(name, justify="right")
    for row in rows:
        peer_us = row.get("sqlglot_us")
        table.add_row(
            str(row["group"]),
            str(row["filter"]),
            str(row["outcome"]),
            f"{row['us']:,.1f}",
            "" if peer_us is None else f"{peer_us:,.1f}",
        )
    Console().print(table)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args(arguments)
    rows = measure(repeats=200 if options.quick else 5_000)
    if options.json:
        print(json.dumps({"filters": rows}))
    else:
        show(rows)


if __name__ == "__main__":
    main()
