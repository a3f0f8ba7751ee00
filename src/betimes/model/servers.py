"""What is a server told before it starts? Where it listens, whom it lets in, and the bounds on everything."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from betimes.model.links import NetworkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything has a bound."""

    connections_max: int = 10_000
    packet_bytes_max: int = 4 * 1024 * 1024
    receive_max: int = 1000  # QoS 2 messages of one client under way to us
    topic_aliases_max: int = 100
    subscriptions_max: int = 10_000  # of one client
    sessions_max: int = 100_000
    retained_max: int = 1_000_000
    retained_bytes_max: int = 256 * 1024 * 1024
    queue_bytes_max: int = 16 * 1024 * 1024  # that wait for one client
    connect_within_s: float = 10.0
    keep_alive_s_max: int = 65_535
    session_expiry_s_max: float = math.inf
    client_id_letters_max: int = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All that one server is started with; files are named, not read."""

    name: str = "betimes"
    host: str = "127.0.0.1"
    port: int = 1883
    anonymous: bool = False
    passwords: str | None = None
    access: str | None = None
    discreet: bool = False  # a subscription that is not allowed is refused without saying why
    store: str | None = None  # the file of what survives a restart; None: nothing does
    store_sync: str = "normal"  # or "full", which survives a loss of power too
    limits: Limits = field(default_factory=Limits)
    network: NetworkSettings | None = None  # with other brokers
