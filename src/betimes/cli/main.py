"""Entry point of the `betimes` command. It imports the rest late, to catch Ctrl-C during the imports."""

from __future__ import annotations

import sys
from typing import NoReturn

from betimes.terminal.exit_codes import INTERRUPTED
from betimes.terminal.parent import end_with_parent


def main() -> NoReturn:
    """Run the `betimes` command and exit with its code."""
    end_with_parent()
    try:
        from betimes.cli.app import run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    sys.exit(run())
