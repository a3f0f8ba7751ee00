"""Which scripts are there? Each is a function that moves a world; its trace is compared with a file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.golden.harness import World, logging_to, pinned

Script = Callable[[World], None]
SCRIPTS: dict[str, Script] = {}


def script(name: str) -> Callable[[Script], Script]:
    """Register a script under the name of its recorded file."""

    def register(function: Script) -> Script:
        assert name not in SCRIPTS, f"{name}: there is such a script"
        SCRIPTS[name] = function
        return function

    return register


def trace_of(name: str) -> str:
    """Run a script in a world of its own; return all that was said in it."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        try:
            with pinned(world), logging_to(world):
                SCRIPTS[name](world)
                return world.text()
        finally:
            world.close()
