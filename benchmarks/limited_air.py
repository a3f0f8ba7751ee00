"""How do subscribers share limited bandwidth? They are in a network namespace, behind `tc ... tbf`."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from typing import Self

AIR_HOST = "10.215.0.1"
OWN_SPACE = "/proc/self/ns/net"


class Air:
    """A network namespace that is reached with so many kilobytes a second."""

    def __init__(self, kb_per_s: float) -> None:
        self._name = f"air{os.getpid() % 100_000}"
        self._libc = ctypes.CDLL(None, use_errno=True)
        near, far = f"{self._name}a", f"{self._name}b"
        inside = ("ip", "netns", "exec", self._name)
        rate = ("rate", f"{kb_per_s * 8:.0f}kbit", "burst", "5000", "limit", "100000")
        commands = (
            ("ip", "netns", "add", self._name),
            ("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self._name),
            ("ip", "addr", "add", f"{AIR_HOST}/30", "dev", near),
            ("ip", "link", "set", near, "up"),
            (*inside, "ip", "addr", "add", "10.215.0.2/30", "dev", far),
            (*inside, "ip", "link", "set", far, "up"),
            ("tc", "qdisc", "add", "dev", near, "root", "tbf", *rate),
        )
        for command in commands:
            subprocess.run(command, check=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for command in (("ip", "link", "del", f"{self._name}a"), ("ip", "netns", "del", self._name)):
            subprocess.run(command, check=True)

    def socket(self) -> socket.socket:
        """Return a socket in there."""
        here, there = (os.open(path, os.O_RDONLY) for path in (OWN_SPACE, f"/run/netns/{self._name}"))
        try:
            self._enter(there)
            line = socket.socket()
            self._enter(here)
        finally:
            os.close(here)
            os.close(there)
        line.settimeout(0.0)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8_192)
        return line

    def _enter(self, space: int) -> None:
        if self._libc.setns(space, 0):
            raise OSError(ctypes.get_errno(), "the network namespace cannot be entered")
