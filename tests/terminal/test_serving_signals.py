"""Is a command told to end, and afterwards all as it was?"""

from __future__ import annotations

import os
import signal

import pytest

from betimes.terminal.serving import told_to_end


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_sets_the_event_and_nothing_else(number):
    before = signal.getsignal(number)
    with told_to_end() as ending:
        assert not ending.is_set()
        os.kill(os.getpid(), number)
        assert ending.wait(10.0)
    assert signal.getsignal(number) == before
