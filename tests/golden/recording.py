"""What is golden, and where does it lie? Texts that a run yields, compared with those that were recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import unified_diff
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from tests.golden import client_scripts, network_scripts, session_scripts, stranger_scripts
from tests.golden.outcomes import OUTCOMES, TABLES, record_tables
from tests.golden.scripts import SCRIPTS, trace_of

RECORDED = Path(__file__).parent / "recorded"
LINES_SHOWN = 40
HOW_TO_RECORD = (
    "if it is meant to be so, record anew and look at the difference: make golden, git diff tests/golden"
)

assert all((client_scripts, network_scripts, session_scripts, stranger_scripts)), (
    "they register their scripts"
)


def trace_names() -> list[str]:
    return sorted(SCRIPTS)


def path_of(name: str) -> Path:
    return RECORDED / f"{name}.txt"


def difference(name: str, found: str) -> str:
    """Return how a text differs from the recorded one, in a few lines; nothing if it does not."""
    path = path_of(name)
    if not path.exists():
        return f"{name}: never recorded\n{HOW_TO_RECORD}"
    recorded = path.read_text()
    if recorded == found:
        return ""
    return "\n".join([f"{name}: not what was recorded", *_lines(recorded, found), HOW_TO_RECORD])


def _lines(recorded: str, found: str) -> Iterable[str]:
    lines = unified_diff(recorded.splitlines(), found.splitlines(), "recorded", "now", n=4, lineterm="")
    shown = list(islice(lines, LINES_SHOWN + 1))
    return shown if len(shown) <= LINES_SHOWN else [*shown[:LINES_SHOWN], "... and more"]


def check(name: str, found: str) -> None:
    """Fail where a text is not the recorded one, and show the difference."""
    problem = difference(name, found)
    if problem:
        pytest.fail(problem, pytrace=False)


def record(name: str, found: str) -> bool:
    """Keep a text; say whether it is another than before."""
    path = path_of(name)
    is_new = not path.exists() or path.read_text() != found
    RECORDED.mkdir(exist_ok=True)
    path.write_text(found)
    return is_new


def golden_texts() -> dict[str, Callable[[], str]]:
    """Return how each text is made; the one that needs Spark comes last."""
    texts: dict[str, Callable[[], str]] = {name: partial(trace_of, name) for name in trace_names()}
    return texts | OUTCOMES | {TABLES: record_tables}
