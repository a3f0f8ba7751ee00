"""Progress on standard error: a bar on a terminal, otherwise a line every ten seconds.

Standard output stays free for the result, which may be piped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from betimes.terminal.terminal import notices

Advance = Callable[[int, int], None]  # done, total
PLAIN_EVERY_S = 10.0


@contextmanager
def progress_bar(label: str) -> Iterator[Advance]:
    """Yield a function to call with (done, total) as the work goes on."""
    if not sys.stderr.isatty():
        yield plain_progress(label)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=notices(), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def plain_progress(label: str, now_s: Callable[[], float] = time.monotonic) -> Advance:
    """Return an Advance that prints a line at the start, every ten seconds, and at the end."""
    next_s, said = -1.0, -1

    def advance(done: int, total: int) -> None:
        nonlocal next_s, said
        if done < total and (now_s() < next_s or done == said):
            return
        if done >= total and next_s == float("inf"):
            return
        next_s = float("inf") if done >= total else now_s() + PLAIN_EVERY_S
        said = done
        notices().print(f"{label}: {done} of {total}")

    return advance


@contextmanager
def waiting(label: str) -> Iterator[None]:
    """Show that work of unknown length is in progress."""
    if sys.stderr.isatty():
        with notices().status(label):
            yield
    else:
        notices().print(f"{label} ...")
        yield
