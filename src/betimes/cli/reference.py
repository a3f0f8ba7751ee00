"""What is there, from A to Z? `betimes reference` prints the pages of the reference, made from the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import typer

from betimes.cli.reference_tables import KEYS, PROPERTIES
from betimes.model.errors import SettingError

COMMANDS_ABOUT = """\
Every command has a `--help` with examples. Where a table is printed, `--json` prints the same for a program.\
"""
PROPERTIES_ABOUT = """\
MQTT 5 lets packets carry pairs of texts. These are Betimes's; every other one on a PUBLISH is an attribute
of the event, a number if it reads as one.\
"""
METRICS_ABOUT = """\
`betimes broker --metrics-port 9101` answers at `/metrics`, for Prometheus and `betimes dashboard`.\
"""
MADE_BY = "<!-- Made by `betimes reference {}`; a test compares. -->"

EXAMPLES = """\
[bold]Examples[/bold]

betimes reference metrics

betimes reference configuration > configuration.md
"""


def reference_command(
    context: typer.Context,
    page: Annotated[
        str, typer.Argument(help="commands, configuration, properties or metrics.", metavar="PAGE")
    ],
) -> None:
    """Print a page of the reference, as Markdown: commands, configuration, properties or metrics."""
    if page not in PAGES:
        raise SettingError("PAGE", page, "there is no such page", f"one of {', '.join(PAGES)}")
    sys.stdout.write(PAGES[page](context.find_root().command))


def commands_page(root: Any) -> str:
    """Return all commands with their options."""
    parts = [
        "# Reference: commands",
        MADE_BY.format("commands"),
        COMMANDS_ABOUT,
    ]
    for name, command in sorted(_leaves(root)):
        about = (command.help or "").strip().split("\n\n")[0].replace("\n", " ")
        parts += [f"## betimes {name}", about]
        rows = [_parameter_row(each) for each in command.params if each.name != "help"]
        parts.append(_table(["option", "what it is"], [row for row in rows if row is not None]))
    return "\n\n".join(parts) + "\n"


def _leaves(command: Any, before: str = "") -> list[tuple[str, Any]]:
    """Return commands by name, those of groups too."""
    found: list[tuple[str, Any]] = []
    for name, each in command.commands.items():
        full = f"{before}{name}"
        found += _leaves(each, f"{full} ") if hasattr(each, "commands") else [(full, each)]
    return found


def _parameter_row(parameter: Any) -> list[str] | None:
    if getattr(parameter, "hidden", False):
        return None
    options = [*parameter.opts, *parameter.secondary_opts]
    is_argument = parameter.param_type_name == "argument"
    written = (
        f"`{parameter.metavar or parameter.name}`"
        if is_argument
        else ", ".join(f"`{each}`" for each in options)
    )
    return [written, (getattr(parameter, "help", "") or "").replace("\n", " ")]


def configuration_page() -> str:
    """Return all keys of a broker's file."""
    parts = [
        "# Reference: a broker's configuration",
        MADE_BY.format("configuration"),
        "`betimes broker FILE.toml`. Everything may be left out. Files are looked for beside this one.",
    ]
    for table in dict.fromkeys(key.table for key in KEYS):
        rows = [[f"`{key.name} = {key.example}`", key.meaning] for key in KEYS if key.table == table]
        parts += [
            f"## {f'`{table}`' if table else 'At the top'}",
            _table(["for example", "what it says"], rows),
        ]
    return "\n\n".join(parts) + "\n"


def properties_page() -> str:
    """Return all user properties of Betimes's own."""
    rows = [[f"`{each.name}`", each.packet, f"`{each.example}`", each.meaning] for each in PROPERTIES]
    parts = [
        "# Reference: user properties",
        MADE_BY.format("properties"),
        PROPERTIES_ABOUT,
        _table(["property", "on", "for example", "what it says"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def metrics_page() -> str:
    """Return all metrics of a broker."""
    from prometheus_client.parser import text_string_to_metric_families

    from betimes.broker.observe.prometheus import exposition

    rows = []
    for family in text_string_to_metric_families(exposition(_everything(), 0.0)):
        labels = sorted({label for sample in family.samples for label in sample.labels})
        name = f"{family.name}_total" if family.type == "counter" else family.name
        rows.append(
            [f"`{name}`", family.type, ", ".join(f"`{label}`" for label in labels), family.documentation]
        )
    parts = [
        "# Reference: metrics",
        MADE_BY.format("metrics"),
        METRICS_ABOUT,
        _table(["metric", "kind", "labels", "what it tells"], rows),
    ]
    return "\n\n".join(parts) + "\n"


def _everything() -> Any:
    """Return statistics of a broker that has all there is to have."""
    from betimes.broker.access.authentication import AccessControl
    from betimes.broker.core.hub import Hub
    from betimes.broker.observe.statistics import BufferStatistics, ObservedParts, gathered
    from betimes.model.telemetry import Reason

    kept = BufferStatistics(messages=0, size_bytes=0, overwritten=0, resumed=0, replayed=0, gaps_told=0)
    each = {"neighbour": 0.0}
    return replace(
        gathered(ObservedParts(hub=Hub("broker", gate=AccessControl(anonymous=True))), 0.0),
        admission=(0, 0),
        guarantees=(0, 0),
        handed_over=(0, 0),
        kept=kept,
        lost=dict.fromkeys(Reason, 0),
        links_s_per_kb=each,
        promised_bytes_per_s={"neighbour": 0},
        reserved_kb=each,
        links_carried={"neighbour": (0, 0.0)},
    )


def _table(columns: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return "No options."
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in cells])


PAGES: dict[str, Callable[[Any], str]] = {  # of the root command
    "commands": commands_page,
    "configuration": lambda _: configuration_page(),
    "properties": lambda _: properties_page(),
    "metrics": lambda _: metrics_page(),
}
