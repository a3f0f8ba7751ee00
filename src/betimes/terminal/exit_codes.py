"""The exit codes of the `betimes` command."""

from __future__ import annotations

FAILED = 1  # the command ran, and one of its runs failed
MISTAKE = 2  # wrong input: an option, a file, a value
UNAVAILABLE = 69  # a broker, a port or Spark cannot be reached
BUG = 70
INTERRUPTED = 130  # by Ctrl-C
READER_GONE = 141  # a pipe was closed, as by `head`
