"""The settings of a broker's network: its neighbours, and the links to them."""

from __future__ import annotations

from dataclasses import dataclass

S_PER_KB_GUESSED = 0.001  # before the first measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTerms:
    """One link as this broker sees it; without a host the neighbour dials."""

    to: str
    host: str | None = None
    port: int = 1883
    tls: bool = False
    authorities: str | None = None  # a file of certificates, in place of those that the machine trusts
    certificate: str | None = None  # the file of the one that is shown to the neighbour
    key: str | None = None  # the file of its key, if that is not in the file of the certificate
    rate_kb_per_s: float | None = None  # upper limit of the sending rate
    s_per_kb: float = S_PER_KB_GUESSED  # expected before the first measurement


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """The settings that all brokers of a network share, and the links of this one."""

    secret: str = ""  # proves to a neighbour that a broker belongs to the network
    secret_file: str | None = None  # the file that contains it, if it is not here
    named_certificates: bool = False  # a neighbour has to show a certificate with its name as a broker
    strategy: str = "late-binding"
    links: tuple[LinkTerms, ...] = ()
    messages_max: int = 100_000  # waiting for links
    wait_kb_max: float = 256_000.0  # total size of the messages that wait for links
    beat_every_s: float = 1.0  # interval of heartbeats between neighbours
    lost_after_s: float = 3.0  # without a message
    refresh_every_s: float = 10.0  # interval of the refreshes of reservations
