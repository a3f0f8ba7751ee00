"""What commands that serve until a signal share: checks of listen addresses, the log, and the signals."""

from __future__ import annotations

import errno
import json
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from betimes.model.errors import BetimesError

HOST_HINT = "the host must be an address of this machine: --host 127.0.0.1, or 0.0.0.0 for all of them"


def check_free(host: str, port: int, option: str = "--port") -> None:
    """Raise an error if no server can listen at an address now; port 0 is any free port."""
    with naming(host, port, option):
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)


@contextmanager
def naming(host: str, port: int, option: str = "--port") -> Iterator[None]:
    """Turn an OSError of a listen address into an error with a hint on its host or its port."""
    try:
        yield
    except UnicodeError:  # Python's error for a text that cannot be a host name
        raise _refusal(host, port, "this is not a host name", HOST_HINT) from None
    except OSError as error:
        is_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        hint = HOST_HINT if is_host else f"pass another one with {option}"
        raise _refusal(host, port, error.strerror or str(error), hint) from None


def _refusal(host: str, port: int, why: str, hint: str) -> BetimesError:
    return BetimesError(f"{address_text(host, port)}: cannot listen there ({why})\nhint: {hint}")


def address_text(host: str, port: int) -> str:
    """Return an address as host:port.

    >>> address_text("127.0.0.1", 1883), address_text("::1", 1883)
    ('127.0.0.1:1883', '[::1]:1883')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
