"""The settings of a server: where it listens, which clients it accepts, and the limits of everything."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from betimes.model.buffer_settings import BufferSettings
from betimes.model.network_settings import NetworkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a server: everything has one."""

    connections_max: int = 10_000
    connections_per_s_max: float = 1000.0  # new ones, of all clients together
    publications_per_s_max: float = math.inf  # of one client
    packet_bytes_max: int = 4 * 1024 * 1024
    receive_max: int = 1000  # QoS 2 messages of one client in transit to the server
    topic_aliases_max: int = 100
    subscriptions_max: int = 10_000  # of one client
    sessions_max: int = 100_000
    retained_max: int = 1_000_000
    retained_bytes_max: int = 256 * 1024 * 1024
    keys_max: int = 200_000  # `$key` values of recent messages, to drop duplicates; some 30 MB
    queue_bytes_max: int = 16 * 1024 * 1024  # that wait for one client
    queues_bytes_max: int = 1024 * 1024 * 1024  # that wait for all clients together
    memory_bytes_max: int = 2 * 1024 * 1024 * 1024  # that all clients together make the broker keep
    user_memory_bytes_max: int = 1024 * 1024 * 1024  # of one user; anonymous clients are one together
    connect_within_s: float = 10.0
    keep_alive_s_max: int = 65_535
    session_expiry_s_max: float = math.inf
    client_id_letters_max: int = 256


class Kind(StrEnum):
    """The protocol at a door."""

    MQTT = "mqtt"  # MQTT over TCP or TLS
    WEBSOCKET = "websocket"  # MQTT in websocket frames


MQTT_PORT = 1883
USUAL_PORTS = {  # by kind and whether over TLS
    (Kind.MQTT, False): MQTT_PORT,
    (Kind.MQTT, True): 8883,
    (Kind.WEBSOCKET, False): 8083,
    (Kind.WEBSOCKET, True): 8084,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One address to listen at; with a certificate, only over TLS."""

    host: str | None = None  # None: that of the server
    port: int = MQTT_PORT
    kind: Kind = Kind.MQTT
    certificate: str | None = None
    key: str | None = None  # None: it is in the file of the certificate
    # the authority that must have signed the clients' certificates; None: they need none
    client_ca: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Where a broker writes telemetry, and how much."""

    directory: str
    share: float = 0.01  # of all events
    every_s: float = 60.0  # interval of files, if there are records
    bytes_max: int = 1_000_000_000  # of all files; the oldest are deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All settings of one server; files are named, not read."""

    name: str = "betimes"
    host: str = "127.0.0.1"
    port: int | None = None  # None: the usual one, if there is no other door
    certificate: str | None = None
    key: str | None = None
    client_ca: str | None = None
    more_doors: tuple[Door, ...] = ()
    anonymous: bool = False
    passwords: str | None = None
    access: str | None = None
    accounts: str | None = None  # the file that says what users are granted
    metrics_port: int | None = None  # None: no metrics
    sys_every_s: float = 10.0  # interval at which the server publishes changes below $SYS; 0: never
    discreet: bool = False  # a subscription that is not allowed is rejected without a reason
    store: str | None = None  # the file that survives a restart; None: no state does
    store_sync: str = "normal"  # or "full", which also survives a power failure
    limits: Limits = field(default_factory=Limits)
    network: NetworkSettings | None = None  # with other brokers
    telemetry: TelemetrySettings | None = None
    buffer: BufferSettings | None = field(default_factory=BufferSettings)  # None: clients cannot resume
    control_secret: str = ""  # the key of the control centre's signatures; empty: no control centre
    control_secret_file: str | None = None  # the file that contains it

    @property
    def doors(self) -> tuple[Door, ...]:
        """Return all addresses to listen at: the main one, unless only others are named, and the others."""
        if self.more_doors and self.port is None and self.certificate is None:
            return self.more_doors
        first = Door(
            port=USUAL_PORTS[Kind.MQTT, self.certificate is not None] if self.port is None else self.port,
            certificate=self.certificate,
            key=self.key,
            client_ca=self.client_ca,
        )
        return (first, *self.more_doors)
