"""`betimes reference`: print a page of the reference, generated from the code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from betimes.model.errors import SettingError
from betimes.reporting.reference import PAGES
from betimes.terminal.terminal import examples

EXAMPLES = examples(
    "betimes reference metrics",
    "betimes reference configuration > configuration.md",
)


def reference_command(
    context: typer.Context,
    page: Annotated[
        str, typer.Argument(help="commands, configuration, properties or metrics.", metavar="PAGE")
    ],
) -> None:
    """Print a page of the reference as Markdown: commands, configuration, properties or metrics.

    The pages are also in docs/reference; run this after you change an option or a setting.
    """
    if page not in PAGES:
        raise SettingError("PAGE", page, "no such page", f"one of {', '.join(PAGES)}")
    sys.stdout.write(PAGES[page](context.find_root().command))
