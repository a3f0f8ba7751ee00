"""The log format of brokers and peers: one line of key=value pairs for each record."""

from __future__ import annotations

import json
import logging


class Pairs(logging.Formatter):
    """Formats a record as one line of `key=value` pairs; quoting keeps client input inside its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        room = record.name.rpartition(".")[2]
        return f"time={when} level={record.levelname.lower()} from={room} message={json.dumps(message)}"


def log_to_stderr(verbose: bool) -> None:
    """Write the log to standard error: warnings only, or connections too."""
    writing = logging.StreamHandler()
    writing.setFormatter(Pairs())
    for name in ("betimes", "asyncio"):  # asyncio logs exceptions of connections
        logger = logging.getLogger(name)
        logger.handlers = [writing]
        logger.setLevel(logging.INFO if verbose and name == "betimes" else logging.WARNING)
        logger.propagate = False
