"""How does the `betimes` command begin? Everything else is loaded only here, so that Ctrl-C is met early."""

from __future__ import annotations

import sys
from typing import NoReturn

from betimes.terminal.exit_codes import INTERRUPTED


def main() -> NoReturn:
    """Be the `betimes` command."""
    try:
        from betimes.cli.app import run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    sys.exit(run())
