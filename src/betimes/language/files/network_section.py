"""The [network] table of a broker's configuration file: its network and its links."""

from __future__ import annotations

from collections.abc import Callable

from betimes.language.files.scenario_network import data_rate, duration, speed
from betimes.language.files.table_reader import (
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    flag,
    name,
    positive,
    quantity,
)
from betimes.language.quantities import read_size_kb
from betimes.language.suggestions import quoted
from betimes.model.network_settings import LinkTerms, NetworkSettings

LINKS_MAX = 1_000
PORT_MAX = 65_535
PORT, TLS_PORT = 1883, 8883
MESSAGES_MAX = 10_000_000
SECRET_LENGTH_MIN = 8
REFRESH_S_MIN = 1.0  # a broker on the route may need so long to hear of it

_size_kb = positive(quantity(read_size_kb, "256MB"))


def read_network_settings(table: TomlTable, file_name: Callable[[object], str]) -> NetworkSettings:
    """Return the settings in a [network] table; `file_name` reads the name of a file."""
    usual = NetworkSettings()
    secret = table.optional("secret", _secret, "")
    secret_file = table.optional("secret_file", file_name, None)
    if ("secret" in table) == (secret_file is not None):
        hint = 'write secret_file = "network.secret", the same at all brokers'
        table.complain("secret", "brokers of a network share one secret, written here or in a file", hint)
    settings = NetworkSettings(
        secret=secret,
        secret_file=secret_file,
        strategy=table.optional("strategy", any_text, usual.strategy),
        links=_read_links(table),
        messages_max=table.optional("queue", count_between(1, MESSAGES_MAX), usual.messages_max),
        wait_kb_max=table.optional("queue_size", _size_kb, usual.wait_kb_max),
        beat_every_s=table.optional("beat", positive(duration), usual.beat_every_s),
        lost_after_s=table.optional("lost_after", positive(duration), usual.lost_after_s),
        refresh_every_s=table.optional("refresh", _refresh_s, usual.refresh_every_s),
    )
    if settings.lost_after_s <= settings.beat_every_s:
        table.complain("lost_after", "this must be longer than beat", "three times as long, for example")
    table.close()
    return settings


def _refresh_s(value: object) -> float:
    found = duration(value)
    if found < REFRESH_S_MIN:
        problem = f"this must be at least {REFRESH_S_MIN:g}s: an answer takes its time"
        raise WrongValueError(problem, "10s, the same at all brokers")
    return found


def _read_links(table: TomlTable) -> tuple[LinkTerms, ...]:
    links: dict[str, LinkTerms] = {}
    for each in table.tables("links", LINKS_MAX):
        terms = _read_terms(each)
        if terms.to in links:
            each.complain("to", f"there is a link to {quoted(terms.to)} already")
        links[terms.to] = terms
        each.close()
    return tuple(links.values())


def _read_terms(table: TomlTable) -> LinkTerms:
    usual = LinkTerms(to="")
    tls = table.optional("tls", flag, otherwise=False)
    host, port = table.optional("address", _address, (None, None))
    return LinkTerms(
        to=table.required("to", name, "", '"b2"'),
        host=host,
        port=port or (TLS_PORT if tls else PORT),
        tls=tls,
        authorities=table.optional("authorities", any_text, None),
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
