"""The configuration file of a server.

TOML in, `ServerSettings` out; every key is optional. One `FileMistakesError` lists all mistakes. The caller
opens the files that it names (passwords, access list, certificates, store).
"""

from __future__ import annotations

import math
from dataclasses import replace

from betimes.language.files.scenario_file import data_rate, duration, speed
from betimes.language.files.table_reader import (
    PRICE_MAX,
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    described,
    flag,
    name,
    number_between,
    one_of,
    positive,
    quantity,
    read_toml,
)
from betimes.language.filters.parse import parse_filter
from betimes.language.quantities import read_duration_s, read_size_kb
from betimes.language.suggestions import quoted
from betimes.model.buffer_settings import OVERWRITING_NAMES, BufferSettings, PartitionTerms
from betimes.model.filters import EVERYTHING, Filter
from betimes.model.network_settings import LinkTerms, NetworkSettings
from betimes.model.server_settings import USUAL_PORTS, Door, Kind, Limits, ServerSettings, TelemetrySettings

PORT_MAX = 65_535
COUNT_MAX = 10**9
RATE_MIN = 0.01
SHARE_MIN = 1e-6
DOORS_MAX = 64
PACKET_BYTES_MIN = 1_024
PACKET_BYTES_MAX = 256_000_000  # MQTT's length field ends at 268 million

_rate = number_between(RATE_MIN, COUNT_MAX)  # per second
_duration = positive(duration)
_size_kb = positive(quantity(read_size_kb, "4MB"))
_port = count_between(0, PORT_MAX)
NETWORK_LINKS_MAX = 1_000
QUEUED_MESSAGES_MAX = 10_000_000
SECRET_LENGTH_MIN = 16  # who connects gets a proof, on which guesses can be tried without a broker
REFRESH_S_MIN = 1.0  # a broker on the route may need so long to hear of it
_queue_kb = positive(quantity(read_size_kb, "256MB"))
PARTITIONS_MAX = 1_000
FETCH_MAX = 1_000
KEPT_MESSAGES_MAX = 100_000_000
_outage_s = positive(quantity(read_duration_s, "12s"))
_buffer_kb = positive(quantity(read_size_kb, "64MB"))
_messages = count_between(1, KEPT_MESSAGES_MAX)
_overwrite = one_of(*OVERWRITING_NAMES)


def read_server_file(text: str, source: str) -> ServerSettings:
    """Return the settings in a configuration file; `source` is the file's name in messages."""
    mistakes = Mistakes()
    top = TomlTable(read_toml(text, source), "", mistakes)
    usual = ServerSettings()
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
        accounts=top.optional("accounts", _file_name, None),
        metrics_port=top.optional("metrics_port", _port, None),
        sys_every_s=top.optional("sys_every", duration, usual.sys_every_s),
        discreet=top.optional("discreet", flag, usual.discreet),
        store=top.optional("store", _file_name, None),
        store_sync=top.optional("store_sync", _sync, usual.store_sync),
        limits=top.nested("limits", _read_limits, usual.limits),
        network=top.nested("network", read_network_settings, None),
        telemetry=top.nested("telemetry", _read_telemetry, None),
        buffer=top.nested("buffer", read_buffer_settings, usual.buffer),
        control_secret_file=top.optional("control_secret_file", _file_name, None),
    )
    top.close()
    mistakes.raise_if_any(source)
    return settings


def _read_door(table: TomlTable) -> Door:
    """Return one address to listen at."""
    certificate, key, client_ca = _read_tls(table)
    kind = Kind(table.optional("kind", one_of(*Kind), Kind.MQTT))
    return Door(
        host=table.optional("host", _host, None),
        port=table.optional("port", _port, USUAL_PORTS[kind, certificate is not None]),
        kind=kind,
        certificate=certificate,
        key=key,
        client_ca=client_ca,
    )


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
    return TelemetrySettings(
        directory=table.required("directory", _file_name, "", '"telemetry"'),
        share=table.optional("share", _share, usual.share),
        every_s=table.optional("every", _duration, usual.every_s),
        bytes_max=table.optional("size", _bytes, usual.bytes_max),
    )


def _share(value: object) -> float:
    share = number_between(0.0, 1.0)(value)
    if share < SHARE_MIN:
        raise WrongValueError(f"a share is between {SHARE_MIN} and 1", "leave the table out for none")
    return share


def _read_limits(table: TomlTable) -> Limits:
    usual = Limits()
    some = count_between(1, COUNT_MAX)
    few = count_between(1, 65_535)  # the limit of two bytes in a packet
    return Limits(
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
        memory_bytes_max=table.optional("memory", _bytes, usual.memory_bytes_max),
        user_memory_bytes_max=table.optional("user_memory", _bytes, usual.user_memory_bytes_max),
        connect_within_s=table.optional("connect_within", _duration, usual.connect_within_s),
        keep_alive_s_max=table.optional("keep_alive", _keep_alive_s, usual.keep_alive_s_max),
        session_expiry_s_max=table.optional("session_expiry", _expiry_s, usual.session_expiry_s_max),
        client_id_letters_max=table.optional("client_id_letters", few, usual.client_id_letters_max),
    )


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


def read_network_settings(table: TomlTable) -> NetworkSettings:
    """Return the settings in a [network] table."""
    usual = NetworkSettings()
    secret = table.optional("secret", _secret, "")
    secret_file = table.optional("secret_file", _file_name, None)
    if ("secret" in table) == (secret_file is not None):
        hint = 'write secret_file = "network.secret", the same at all brokers'
        table.complain("secret", "brokers of a network share one secret, written here or in a file", hint)
    settings = NetworkSettings(
        secret=secret,
        secret_file=secret_file,
        named_certificates=table.optional("named_certificates", flag, usual.named_certificates),
        strategy=table.optional("strategy", any_text, usual.strategy),
        links=_read_links(table),
        messages_max=table.optional("queue", count_between(1, QUEUED_MESSAGES_MAX), usual.messages_max),
        wait_kb_max=table.optional("queue_size", _queue_kb, usual.wait_kb_max),
        beat_every_s=table.optional("beat", _duration, usual.beat_every_s),
        lost_after_s=table.optional("lost_after", _duration, usual.lost_after_s),
        refresh_every_s=table.optional("refresh", _refresh_s, usual.refresh_every_s),
    )
    for link in settings.links if settings.named_certificates else ():
        if link.host is not None and link.certificate is None:
            problem = f"the link to {quoted(link.to)} shows no certificate, and this network requires them"
            hint = 'add tls = true and certificate = "FILE", with the name of this broker, to the link'
            table.complain("named_certificates", problem, hint)
    if settings.lost_after_s <= settings.beat_every_s:
        table.complain("lost_after", "this must be longer than beat", "three times as long, for example")
    return settings


def _refresh_s(value: object) -> float:
    found = duration(value)
    if found < REFRESH_S_MIN:
        problem = f"this must be at least {REFRESH_S_MIN:g}s: an answer takes its time"
        raise WrongValueError(problem, "10s, the same at all brokers")
    return found


def _read_links(table: TomlTable) -> tuple[LinkTerms, ...]:
    links: dict[str, LinkTerms] = {}
    for each in table.tables("links", NETWORK_LINKS_MAX):
        terms = _read_terms(each)
        if terms.to in links:
            each.complain("to", f"there is a link to {quoted(terms.to)} already")
        links[terms.to] = terms
    return tuple(links.values())


def _read_terms(table: TomlTable) -> LinkTerms:
    usual = LinkTerms(to="")
    tls = table.optional("tls", flag, otherwise=False)
    host, port = table.optional("address", _address, (None, None))
    certificate = table.optional("certificate", _file_name, None)
    key = table.optional("key", _file_name, None)
    if certificate is not None and not tls:
        table.complain("certificate", "a certificate is shown over TLS only", "add tls = true")
    if key is not None and certificate is None:
        table.complain("key", "this is of no use without a certificate", 'add certificate = "FILE"')
    return LinkTerms(
        to=table.required("to", name, "", '"b2"'),
        host=host,
        port=port or USUAL_PORTS[Kind.MQTT, tls],
        tls=tls,
        authorities=table.optional("authorities", any_text, None),
        certificate=certificate,
        key=key,
        rate_kb_per_s=table.optional("rate", positive(data_rate), None),
        s_per_kb=table.optional("speed", positive(speed), usual.s_per_kb),
    )


def _address(value: object) -> tuple[str, int | None]:
    """Return host and port of `host`, `host:port` or `[host]:port`."""
    text = any_text(value)
    host, _, port = text.rpartition(":") if ":" in text.rpartition("]")[2] else (text, "", "")
    if not host.strip("[]") or not host.isprintable() or " " in host:
        raise WrongValueError("this is no address", 'write "192.0.2.7:1883" or "b2.example"')
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) <= PORT_MAX):
        raise WrongValueError(f"a port is a number between 1 and {PORT_MAX}")
    return host.strip("[]"), int(port) if port else None


def _secret(value: object) -> str:
    text = any_text(value)
    if len(text) < SECRET_LENGTH_MIN:
        raise WrongValueError(f"a secret has at least {SECRET_LENGTH_MIN} letters", "better: secret_file")
    return text


def read_buffer_settings(table: TomlTable) -> BufferSettings | None:
    """Return the settings in a [buffer] table; None if the broker is to keep nothing."""
    usual = BufferSettings()
    keep = table.optional("keep", flag, otherwise=True)
    whole = _read_partition(table, PartitionTerms())
    partitions = tuple(
        replace(
            _read_partition(each, whole),
            pattern=each.optional("pattern", _pattern, whole.pattern),
            filter=each.optional("filter", _filter, EVERYTHING),
        )
        for each in table.tables("partitions", PARTITIONS_MAX)
    )
    settings = BufferSettings(
        partitions=partitions or (whole,),
        outage_s_mean=table.optional("outage", _outage_s, usual.outage_s_mean),
        fetch=table.optional("fetch", _patterns, usual.fetch),
        fetch_price=table.optional("fetch_price", number_between(0.0, PRICE_MAX), usual.fetch_price),
        fetch_within_s=table.optional("fetch_within", _outage_s, usual.fetch_within_s),
    )
    return settings if keep else None


def _read_partition(table: TomlTable, usual: PartitionTerms) -> PartitionTerms:
    """Return the sizes of a partition, or of the whole buffer, which are the defaults of partitions."""
    return replace(
        usual,
        messages_max=table.optional("messages", _messages, usual.messages_max),
        bytes_max=table.optional("size", _buffer_bytes, usual.bytes_max),
        overwrite=table.optional("overwrite", _overwrite, usual.overwrite),
    )


def _patterns(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise WrongValueError(
            f"a list of topic patterns was expected here, not {described(value)}",
            'write ["#"] for everything',
        )
    if len(value) > FETCH_MAX:
        raise WrongValueError(f"there are {len(value):,} of them, and {FETCH_MAX:,} are allowed")
    return tuple(dict.fromkeys(_pattern(each) for each in value))


def _pattern(value: object) -> str:
    text = any_text(value)
    levels = text.split("/")
    for place, level in enumerate(levels):
        is_last = place == len(levels) - 1
        if ("#" in level and (level != "#" or not is_last)) or ("+" in level and level != "+"):
            raise WrongValueError(f"{quoted(text)} is no topic pattern", "write a/+/c or a/#")
    if not text or "\0" in text or text.startswith("$"):
        raise WrongValueError(f"{quoted(text)} is not a pattern of what clients publish")
    return text


def _filter(value: object) -> Filter:
    return parse_filter(any_text(value))


def _buffer_bytes(value: object) -> int:
    return math.ceil(_buffer_kb(value) * 1000.0)
