"""Entry point of the `betimes` command. It imports the rest late, to catch Ctrl-C during the imports."""

from __future__ import annotations

import sys
from typing import NoReturn

from betimes.terminal.exit_codes import INTERRUPTED


def main() -> NoReturn:
    """Run the `betimes` command and exit with its code."""
    try:
        from betimes.cli.app import run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    sys.exit(run())
