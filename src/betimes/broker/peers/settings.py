"""What must all peers of an overlay agree on, and what is one of them told before it starts?

A peer is called by the address at which others reach it, so that whoever hears of it can talk to it. A
process that publishes and subscribes is two peers; the one that publishes has a mark behind its name.
"""

from __future__ import annotations

from dataclasses import dataclass

from betimes.matching.dz.spaces import Space
from betimes.model.errors import SettingError
from betimes.model.filters import Filter
from betimes.model.overlay_settings import Metric
from betimes.peers.settings import PeerSettings

PUBLISHES = "+"  # behind the name of a peer that publishes
ADDRESS_LENGTH_MAX = 200
PORT_MAX = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What all peers of an overlay have in common, or they would not understand each other."""

    space: Space
    metric: Metric = Metric.HOPS

    @property
    def text(self) -> str:
        """Return it in words, equal only where it is the same."""
        ranges = [f"{each.attribute}:{each.low:g}..{each.high:g}" for each in self.space.dimensions]
        return f"{' '.join(ranges)}, {self.space.levels} levels, delays in {self.metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPlan:
    """What one process is told; without `wanted` it wants what its clients want."""

    address: str
    agreement: Agreement
    settings: PeerSettings
    secret: str = ""
    join: tuple[str, ...] = ()
    wanted: tuple[Filter, ...] | None = None
    published: tuple[Filter, ...] | None = None  # None: everything, once a client publishes
    delay_max: float = 10.0  # hops, or seconds
    cycle_s: float = 0.5
    beat_every_s: float = 2.0
    lost_after_s: float = 15.0  # without a word; who is killed is missed at once, as its sockets close
    tls: bool = False
    authorities: str | None = None  # a file of certificates, in place of those that the machine trusts


def address_of(name: str) -> str:
    """Return where a peer is reached."""
    return name.removesuffix(PUBLISHES)


def split_address(text: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[host]:port`.

    >>> split_address("127.0.0.1:1883"), split_address("[::1]:1883")
    (('127.0.0.1', 1883), ('::1', 1883))
    """
    host, _, port = text.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX
    is_host = len(host) > 0 and text.isprintable() and " " not in text and PUBLISHES not in text
    if not is_port or not is_host or len(text) > ADDRESS_LENGTH_MAX:
        raise SettingError("address", text[:ADDRESS_LENGTH_MAX], "is no address of a peer", "write HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)
