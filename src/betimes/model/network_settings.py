"""What is a broker told of the network it is part of? Its neighbours, and how to speak with them."""

from __future__ import annotations

from dataclasses import dataclass

S_PER_KB_GUESSED = 0.001  # before anything was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTerms:
    """One link as this broker sees it; without a host the neighbour is the one who dials."""

    to: str
    host: str | None = None
    port: int = 1883
    tls: bool = False
    authorities: str | None = None  # a file of certificates, in place of those that the machine trusts
    rate_kb_per_s: float | None = None  # to send no faster than this
    s_per_kb: float = S_PER_KB_GUESSED  # what is expected before anything was measured


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    """What all brokers of a network share, and the links of this one."""

    secret: str = ""  # proves to a neighbour that one belongs to the network
    secret_file: str | None = None  # where it is written, if not here
    strategy: str = "late-binding"
    links: tuple[LinkTerms, ...] = ()
    messages_max: int = 100_000  # waiting for links
    wait_kb_max: float = 256_000.0  # likewise
    beat_every_s: float = 1.0  # how often neighbours make sure of each other
    lost_after_s: float = 3.0  # without a word
    refresh_every_s: float = 10.0  # how often what is reserved is said to be needed still
