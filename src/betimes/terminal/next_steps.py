"""Suggestions of commands to run next, as the user has to type them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

from betimes.terminal.terminal import results


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
