"""How does a server's log look? One line of pairs for each thing that happened."""

from __future__ import annotations

import json
import logging


class Pairs(logging.Formatter):
    """One line of `key=value` pairs for each thing that happened; no client can break out of its line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        message = record.getMessage()
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z")
        room = record.name.rpartition(".")[2]
        return f"time={when} level={record.levelname.lower()} from={room} message={json.dumps(message)}"


def log_to_stderr(verbose: bool) -> None:
    """Write the log on standard error: warnings only, or who comes and goes too."""
    writing = logging.StreamHandler()
    writing.setFormatter(Pairs())
    for name in ("betimes", "asyncio"):  # asyncio tells of what a connection broke
        logger = logging.getLogger(name)
        logger.handlers = [writing]
        logger.setLevel(logging.INFO if verbose and name == "betimes" else logging.WARNING)
        logger.propagate = False
