"""What could one try next? Commands, as they have to be typed here."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping

from betimes.terminal.terminal import results


def print_next(commands: Mapping[str, str]) -> None:
    """Print commands, each with what it is about."""
    console = results()
    console.print("\nwhat to try next:")
    shown = {typed(command): about for command, about in commands.items()}
    width = max(map(len, shown))
    for command, about in shown.items():
        console.print(f"  {command:<{width}}  {about}", markup=False)


def typed(command: str) -> str:
    """Return a command as it has to be typed here: with its path where the shell would not find it."""
    return command if shutil.which("betimes") else command.replace("betimes", sys.argv[0], 1)
