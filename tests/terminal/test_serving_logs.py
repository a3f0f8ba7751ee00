"""Is each thing that happened one line, whatever is in it?"""

from __future__ import annotations

import logging

from betimes.terminal.serving import Pairs, log_to_stderr


def test_nobody_breaks_out_of_a_line():
    record = logging.LogRecord(
        "betimes.broker.net.socket_line", logging.INFO, "", 0, 'gone: "x"\nlevel=error', None, None
    )
    line = Pairs().format(record)
    assert "\n" not in line
    assert line.startswith("time=")
    assert 'level=info from=socket_line message="gone: \\"x\\"\\nlevel=error"' in line


def test_only_warnings_are_written_unless_more_is_asked_for():
    logger = logging.getLogger("betimes")
    log_to_stderr(verbose=False)
    assert logger.level == logging.WARNING
    log_to_stderr(verbose=True)
    assert logger.level == logging.INFO
    assert len(logger.handlers) == 1
