"""Termination signals: Ctrl-C (SIGINT) and SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def told_to_end() -> Iterator[threading.Event]:
    """Yield an event that SIGINT or SIGTERM sets, in place of the default handlers."""
    told = threading.Event()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(each, lambda *_: told.set()) for each in signals]
    try:
        yield told
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)
