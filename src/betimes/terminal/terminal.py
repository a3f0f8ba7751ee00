"""Printing: results go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

WIDTH_IN_A_FILE = 140  # if there is no terminal with a width

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables, and nothing else.")]


def results() -> Console:
    """Return the console for results; a new one each time, so that it writes to the current stdout."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDTH_IN_A_FILE
    return Console(file=sys.stdout, highlight=False, width=width)


def notices() -> Console:
    """Return the console for everything that is not the result."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def print_error(message: str) -> None:
    """Print an error: one message, red, literally (brackets are not markup)."""
    notices().print(Text.assemble(("error: ", "bold red"), (message, "red")))


def print_notice(message: str) -> None:
    """Print a message that is not part of the result."""
    notices().print(Text(message, style="dim"))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Sequence[str] = ()
) -> None:
    """Print a table; the columns named in `numbers` are right-aligned."""
    _print_title(title)
    table = Table()
    for number, column in enumerate(columns):
        # The first column names the row and must not be squeezed away; elsewhere text wraps.
        width = max((len(cell_text(row[0])) for row in rows), default=0) if number == 0 else None
        side: Literal["left", "right"] = "right" if column in numbers else "left"
        table.add_column(column, justify=side, min_width=width, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell_text(cell)) for cell in row))
    results().print(table)


def print_facts(title: str, facts: Mapping[str, object]) -> None:
    """Print names and values, one pair on a line."""
    _print_title(title)
    table = Table(show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column(overflow="fold")  # a truncated path is useless
    for name, value in facts.items():
        table.add_row(name, Text(cell_text(value)))
    results().print(table)


def _print_title(title: str) -> None:
    """Print the title of a table separately: rich would wrap it to the table's width."""
    if title:
        results().print(Text(title, style="bold"))


def print_next(commands: Mapping[str, str]) -> None:
    """Print commands, each with its purpose."""
    console = results()
    console.print("\nwhat to try next:")
    shown = {typed(command): about for command, about in commands.items()}
    width = max(map(len, shown))
    for command, about in shown.items():
        console.print(f"  {command:<{width}}  {about}", markup=False)


def typed(command: str) -> str:
    """Return a command with its path, if `betimes` is not on the PATH."""
    return command if shutil.which("betimes") else command.replace("betimes", sys.argv[0], 1)


def cell_text(value: object) -> str:
    """Return a value as text for a table.

    >>> [cell_text(value) for value in (None, True, 0.123456, 1234567.0, float("inf"), "as it is")]
    ['-', 'yes', '0.1235', '1,234,567', 'none', 'as it is']
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if not math.isfinite(value):
            return "none" if value > 0 else str(value)
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def spread_text(mean: float, sd: float | None) -> str:
    """Return a mean with its deviation, if there is one, with two significant digits of the deviation.

    >>> (
    ...     spread_text(0.43201, 0.008741),
    ...     spread_text(18961.4, 674.8),
    ...     spread_text(2.5, 0.0),
    ...     spread_text(2.5, None),
    ... )
    ('0.4320 ± 0.0087', '18,961 ± 675', '2.5 ± 0', '2.5')
    """
    if sd is None:
        return cell_text(mean)
    if not (math.isfinite(mean) and math.isfinite(sd) and sd > 0):
        return f"{cell_text(mean)} ± {cell_text(sd)}"
    decimals = max(0, 1 - math.floor(math.log10(sd)))
    return f"{mean:,.{decimals}f} ± {sd:,.{decimals}f}"


def print_json(value: Any) -> None:
    """Print pure JSON on standard output."""
    sys.stdout.write(json.dumps(pure(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def pure(value: Any) -> Any:
    """Return the value with what JSON cannot express (infinity, not-a-number) as null.

    >>> pure({"bound": float("inf"), "values": (1, 2.5)})
    {'bound': None, 'values': [1, 2.5]}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(name): pure(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [pure(each) for each in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value


def examples(*commands: str) -> str:
    """Return the end of a command's help: a heading, and each command line as a paragraph."""
    return "\n\n".join(("[bold]Examples[/bold]", *commands)) + "\n"
