"""Settings that all peers of an overlay share, and the plan of one process.

A peer's name is its address, so any peer that knows the name can connect to it. A process that publishes and
subscribes is two peers; the name of the publishing one ends with a mark.
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
    """The settings that must be equal at all peers of an overlay."""

    space: Space
    metric: Metric = Metric.HOPS

    @property
    def text(self) -> str:
        """Return the settings as text; two texts are equal only if the settings are."""
        ranges = [f"{each.attribute}:{each.low:g}..{each.high:g}" for each in self.space.dimensions]
        return f"{' '.join(ranges)}, {self.space.levels} levels, delays in {self.metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerPlan:
    """The settings of one process; without `wanted` it wants what its clients subscribe to."""

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
    lost_after_s: float = 15.0  # of silence; the loss of a killed process shows at once, as its sockets close
    tls: bool = False
    authorities: str | None = None  # a file of certificates, in place of those that the machine trusts


def address_of(name: str) -> str:
    """Return the address of a peer of this name."""
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
