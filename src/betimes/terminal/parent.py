"""Child processes that end with their parent, also where that is killed: the parent holds a pipe open.

The parent starts the child with `child_options`; the child calls `end_with_parent`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from typing import Any

ENDS_WITH_STDIN = "BETIMES_ENDS_WITH_STDIN"  # in the environment of a child


def child_options() -> dict[str, Any]:
    """Return the options of `subprocess.Popen` for a child that ends with this process."""
    return {"stdin": subprocess.PIPE, "env": {**os.environ, ENDS_WITH_STDIN: "1"}}


def end_with_parent() -> None:
    """End this process, as SIGTERM does, when standard input ends, if its parent asks for that."""
    if os.environ.pop(ENDS_WITH_STDIN, ""):
        threading.Thread(target=_wait_for_the_end, name="betimes-parent", daemon=True).start()


def _wait_for_the_end() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
