"""What is a server told before it starts? Where it listens, whom it lets in, and the bounds on everything."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from betimes.model.buffer_settings import BufferSettings
from betimes.model.network_settings import NetworkSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Everything has a bound."""

    connections_max: int = 10_000
    connections_per_s_max: float = 1000.0  # new ones, of all clients together
    publications_per_s_max: float = math.inf  # of one client
    packet_bytes_max: int = 4 * 1024 * 1024
    receive_max: int = 1000  # QoS 2 messages of one client under way to us
    topic_aliases_max: int = 100
    subscriptions_max: int = 10_000  # of one client
    sessions_max: int = 100_000
    retained_max: int = 1_000_000
    retained_bytes_max: int = 256 * 1024 * 1024
    keys_max: int = 200_000  # of messages published lately, so that none counts twice; some 30 MB
    queue_bytes_max: int = 16 * 1024 * 1024  # that wait for one client
    connect_within_s: float = 10.0
    keep_alive_s_max: int = 65_535
    session_expiry_s_max: float = math.inf
    client_id_letters_max: int = 256


class Kind(StrEnum):
    """What is spoken at a door."""

    MQTT = "mqtt"  # on the bare connection
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
    """One place to listen; with a certificate, only over TLS."""

    host: str | None = None  # None: that of the server
    port: int = MQTT_PORT
    kind: Kind = Kind.MQTT
    certificate: str | None = None
    key: str | None = None  # None: it is in the file of the certificate
    client_ca: str | None = None  # who must have signed the certificates of clients; None: they need none


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Where a broker writes down what it sees, and how much of it."""

    directory: str
    share: float = 0.01  # of all events
    every_s: float = 60.0  # a part is written, if there is anything
    bytes_max: int = 1_000_000_000  # of files; the oldest go


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """All that one server is started with; files are named, not read."""

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
    metrics_port: int | None = None  # None: no metrics
    sys_every_s: float = 10.0  # how often the server publishes below $SYS what has changed; 0: never
    discreet: bool = False  # a subscription that is not allowed is refused without saying why
    store: str | None = None  # the file of what survives a restart; None: nothing does
    store_sync: str = "normal"  # or "full", which survives a loss of power too
    limits: Limits = field(default_factory=Limits)
    network: NetworkSettings | None = None  # with other brokers
    telemetry: TelemetrySettings | None = None
    buffer: BufferSettings | None = field(default_factory=BufferSettings)  # None: nobody can resume
    control_secret: str = ""  # what the control centre signs with; none: no control centre
    control_secret_file: str | None = None  # where it is written

    @property
    def doors(self) -> tuple[Door, ...]:
        """Return every place to listen: the first, unless only others are named, and the others."""
        if self.more_doors and self.port is None and self.certificate is None:
            return self.more_doors
        first = Door(
            port=USUAL_PORTS[Kind.MQTT, self.certificate is not None] if self.port is None else self.port,
            certificate=self.certificate,
            key=self.key,
            client_ca=self.client_ca,
        )
        return (first, *self.more_doors)
