"""The configuration file of a server.

TOML in, `ServerSettings` out; every key is optional. One `FileMistakesError` lists all mistakes. The caller
opens the files that it names (passwords, access list, certificates, store).
"""

from __future__ import annotations

import math

from betimes.language.files.buffer_section import read_buffer_settings
from betimes.language.files.network_section import read_network_settings
from betimes.language.files.table_reader import (
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    flag,
    name,
    number_between,
    one_of,
    positive,
    quantity,
)
from betimes.language.files.toml import read_toml
from betimes.language.quantities import read_duration_s, read_size_kb
from betimes.model.server_settings import USUAL_PORTS, Door, Kind, Limits, ServerSettings, TelemetrySettings

PORT_MAX = 65_535
COUNT_MAX = 10**9
RATE_MIN = 0.01
SHARE_MIN = 1e-6
DOORS_MAX = 64
PACKET_BYTES_MIN = 1_024
PACKET_BYTES_MAX = 256_000_000  # MQTT's length field ends at 268 million

_rate = number_between(RATE_MIN, COUNT_MAX)  # per second
_duration_or_none = quantity(read_duration_s, "10s")
_duration = positive(_duration_or_none)
_size_kb = positive(quantity(read_size_kb, "4MB"))


def read_server_file(text: str, source: str) -> ServerSettings:
    """Return the settings in a configuration file; `source` is the file's name in messages."""
    mistakes = Mistakes()
    top = TomlTable(read_toml(text, source), "", mistakes)
    usual = ServerSettings()
    limits, network, telemetry = top.table("limits"), top.table("network"), top.table("telemetry")
    buffer = top.table("buffer")
    certificate, key, client_ca = _read_tls(top)
    settings = ServerSettings(
        name=top.optional("name", name, usual.name),
        host=top.optional("host", _host, usual.host),
        port=top.optional("port", _port, None),
        certificate=certificate,
        key=key,
        client_ca=client_ca,
        more_doors=tuple(_read_door(each) for each in top.tables("listen", DOORS_MAX)),
        anonymous=top.optional("anonymous", flag, usual.anonymous),
        passwords=top.optional("passwords", _file_name, None),
        access=top.optional("access", _file_name, None),
        metrics_port=top.optional("metrics_port", _port, None),
        sys_every_s=top.optional("sys_every", _duration_or_none, usual.sys_every_s),
        discreet=top.optional("discreet", flag, usual.discreet),
        store=top.optional("store", _file_name, None),
        store_sync=top.optional("store_sync", _sync, usual.store_sync),
        limits=usual.limits if limits is None else _read_limits(limits),
        network=None if network is None else read_network_settings(network, _file_name),
        telemetry=None if telemetry is None else _read_telemetry(telemetry),
        buffer=usual.buffer if buffer is None else read_buffer_settings(buffer),
        control_secret_file=top.optional("control_secret_file", _file_name, None),
    )
    top.close()
    mistakes.raise_if_any(source)
    return settings


def _read_door(table: TomlTable) -> Door:
    """Return one address to listen at."""
    certificate, key, client_ca = _read_tls(table)
    kind = table.optional("kind", _kind, Kind.MQTT)
    door = Door(
        host=table.optional("host", _host, None),
        port=table.optional("port", _port, USUAL_PORTS[kind, certificate is not None]),
        kind=kind,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
    )
    table.close()
    return door


def _read_tls(table: TomlTable) -> tuple[str | None, str | None, str | None]:
    """Return the files of a certificate, of its key, and of the authority of clients' certificates."""
    certificate = table.optional("certificate", _file_name, None)
    key = table.optional("key", _file_name, None)
    client_ca = table.optional("client_ca", _file_name, None)
    for named, value in (("key", key), ("client_ca", client_ca)):
        if value is not None and "certificate" not in table:
            table.complain(named, "this is of no use without a certificate", 'add certificate = "FILE"')
    return certificate, key, client_ca


def _read_telemetry(table: TomlTable) -> TelemetrySettings:
    usual = TelemetrySettings(directory="")
    settings = TelemetrySettings(
        directory=table.required("directory", _file_name, "", '"telemetry"'),
        share=table.optional("share", _share, usual.share),
        every_s=table.optional("every", _duration, usual.every_s),
        bytes_max=table.optional("size", _bytes, usual.bytes_max),
    )
    table.close()
    return settings


def _share(value: object) -> float:
    share = number_between(0.0, 1.0)(value)
    if share < SHARE_MIN:
        raise WrongValueError(f"a share is between {SHARE_MIN} and 1", "leave the table out for none")
    return share


def _read_limits(table: TomlTable) -> Limits:
    usual = Limits()
    some = count_between(1, COUNT_MAX)
    few = count_between(1, 65_535)  # the limit of two bytes in a packet
    limits = Limits(
        connections_max=table.optional("connections", some, usual.connections_max),
        connections_per_s_max=table.optional("connection_rate", _rate, usual.connections_per_s_max),
        publications_per_s_max=table.optional("publish_rate", _rate, usual.publications_per_s_max),
        packet_bytes_max=table.optional("packet_size", _packet_bytes, usual.packet_bytes_max),
        receive_max=table.optional("receive", few, usual.receive_max),
        topic_aliases_max=table.optional("topic_aliases", count_between(0, 65_535), usual.topic_aliases_max),
        subscriptions_max=table.optional("subscriptions", some, usual.subscriptions_max),
        sessions_max=table.optional("sessions", some, usual.sessions_max),
        retained_max=table.optional("retained", count_between(0, COUNT_MAX), usual.retained_max),
        retained_bytes_max=table.optional("retained_size", _bytes, usual.retained_bytes_max),
        keys_max=table.optional("keys", count_between(0, COUNT_MAX), usual.keys_max),
        queue_bytes_max=table.optional("queue_size", _bytes, usual.queue_bytes_max),
        queues_bytes_max=table.optional("queues_size", _bytes, usual.queues_bytes_max),
        connect_within_s=table.optional("connect_within", _duration, usual.connect_within_s),
        keep_alive_s_max=table.optional("keep_alive", _keep_alive_s, usual.keep_alive_s_max),
        session_expiry_s_max=table.optional("session_expiry", _expiry_s, usual.session_expiry_s_max),
        client_id_letters_max=table.optional("client_id_letters", few, usual.client_id_letters_max),
    )
    table.close()
    return limits


def _kind(value: object) -> Kind:
    return Kind(one_of(*Kind)(value))


def _port(value: object) -> int:
    return count_between(0, PORT_MAX)(value)


def _host(value: object) -> str:
    host = any_text(value)
    if not host.strip() or not host.isprintable():
        raise WrongValueError("a host is a name or an address", 'write "0.0.0.0" for all of this machine')
    return host


def _file_name(value: object) -> str:
    file_name = any_text(value)
    if not file_name.strip() or "\0" in file_name:
        raise WrongValueError("this is not the name of a file")
    return file_name


def _sync(value: object) -> str:
    sync = any_text(value)
    if sync not in ("normal", "full"):
        raise WrongValueError("a store is synchronised normally or fully", 'write "normal" or "full"')
    return sync


def _bytes(value: object) -> int:
    return math.ceil(_size_kb(value) * 1000.0)


def _packet_bytes(value: object) -> int:
    size = _bytes(value)
    if not PACKET_BYTES_MIN <= size <= PACKET_BYTES_MAX:
        raise WrongValueError("this must be between 1.024KB and 256MB")
    return size


def _keep_alive_s(value: object) -> int:
    seconds = _duration(value)
    if not 1 <= seconds <= 65_535:
        raise WrongValueError("this must be between 1s and 65535s, which is all that MQTT can say")
    return int(seconds)


def _expiry_s(value: object) -> float:
    seconds = _duration(value)
    if seconds > 0xFFFFFFFE:
        raise WrongValueError("this is longer than MQTT can say", "leave it out for sessions that never end")
    return float(int(seconds))
