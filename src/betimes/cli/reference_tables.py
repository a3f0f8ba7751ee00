"""What may stand in a broker's file, and which user properties are Betimes's own? For the reference.

Tests hold both against the code that reads them.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A key of a broker's file: the table it stands in, an example, and what it says."""

    table: str
    name: str
    example: str
    meaning: str


class Property(NamedTuple):
    """A user property: on which packet it stands, an example, and what it says."""

    name: str
    packet: str
    example: str
    meaning: str


def _keys(table: str, *rows: tuple[str, str, str]) -> list[Key]:
    return [Key(table, *row) for row in rows]


_TLS = (
    ("certificate", '"broker.crt"', "PEM, with those that signed it: the place is then TLS only"),
    ("key", '"broker.key"', "of the certificate; it may stand in the same file"),
    ("client_ca", '"devices.crt"', "clients must show a certificate that one in this file signed"),
)

KEYS: tuple[Key, ...] = (
    *_keys(
        "",
        ("name", '"north"', "the broker's, of its own in a network"),
        ("host", '"0.0.0.0"', "where it listens; usually this machine only"),
        ("port", "1883", "1883, or 8883 with a certificate"),
        *_TLS,
        ("anonymous", "true", "let everybody in without a user name"),
        ("passwords", '"broker.passwords"', "a file of `betimes passwd`"),
        ("access", '"broker.acl"', "who may read and write what, in Mosquitto's format"),
        ("metrics_port", "9101", "where Prometheus reads `/metrics`; left out: nowhere"),
        ("sys_every", '"10s"', "how often topics below `$SYS` are brought up to date; `0s`: never"),
        ("discreet", "false", "refuse subscriptions without saying why"),
        ("store", '"broker.db"', "what survives a restart; left out: nothing does"),
        ("store_sync", '"normal"', "or `full`, which survives a loss of power too"),
        ("control_secret_file", '"secret"', "whom to believe that a model is the control centre's"),
    ),
    *_keys(
        "[[listen]]",
        ("kind", '"websocket"', "or `mqtt`, the usual one"),
        ("host", '"127.0.0.1"', "as above, for this place alone"),
        ("port", "8884", "1883, 8883 with a certificate, 8083 and 8084 for websockets"),
        *_TLS,
    ),
    *_keys(
        "[limits]",
        ("connections", "10000", "at once"),
        ("connection_rate", "1000", "new ones a second, of all clients together"),
        ("publish_rate", "500", "publications a second of one client; left out: any"),
        ("packet_size", '"4MB"', "the largest packet that is taken"),
        ("receive", "1000", "messages of QoS 2 that one client may have under way to us"),
        ("topic_aliases", "100", "of one client"),
        ("subscriptions", "10000", "of one client"),
        ("sessions", "100000", "of clients that are connected, and of others"),
        ("retained", "1000000", "retained messages"),
        ("retained_size", '"256MB"', "what those take together"),
        ("keys", "200000", "names of messages that are remembered, so that none counts twice"),
        ("queue_size", '"16MB"', "what waits for one client"),
        ("connect_within", '"10s"', "until a connection has said who it is"),
        ("keep_alive", '"1h"', "the longest silence that a client may ask for"),
        ("session_expiry", '"7d"', "how long a session outlives its connection at most"),
        ("client_id_letters", "256", "of a client's name"),
    ),
    *_keys(
        "[telemetry]",
        ("directory", '"telemetry"', "where it is written"),
        ("share", "0.01", "of all events, that are written down"),
        ("every", '"60s"', "how often a file is written"),
        ("size", '"1GB"', "of all files; the oldest go"),
    ),
    *_keys(
        "[buffer]",
        ("keep", "true", "`false`: nothing is kept, and nobody can resume"),
        ("messages", "100000", "kept for those who come back"),
        ("size", '"64MB"', "what those take at most"),
        (
            "overwrite",
            '"lrp"',
            "which one goes: `lrp`, `random`, `pwp`, `value-decay` or `disconnection-aware`",
        ),
        ("outage", '"12s"', "how long subscribers are away, on average, where a policy asks"),
        ("fetch", '["news/#"]', "topics that are asked of other brokers though nobody here wants them"),
        ("fetch_price", "0.000001", "of one such message"),
        ("fetch_within", '"60s"', "how old it may be when it comes"),
    ),
    *_keys(
        "[[buffer.partitions]]",
        ("pattern", '"alarms/#"', "messages of these topics have room of their own"),
        ("filter", '"level > 3"', "and of these contents"),
        ("messages", "1000", "as above"),
        ("size", '"1MB"', "as above"),
        ("overwrite", '"value-decay"', "as above"),
    ),
    *_keys(
        "[network]",
        ("secret", '"at least sixteen letters"', "what all brokers of a network share"),
        ("secret_file", '"network.secret"', "a file with it instead"),
        (
            "strategy",
            '"late-binding"',
            "how links choose: `fifo`, `rl`, `eb`, `pc`, `ebpc:0.5`, `look-ahead`, …",
        ),
        ("queue", "100000", "messages that wait for links"),
        ("queue_size", '"256MB"', "what those take"),
        ("beat", '"1s"', "how often neighbours make sure of each other"),
        ("lost_after", '"3s"', "without a word, a link is taken to be lost"),
        (
            "refresh",
            '"10s"',
            "how often what is reserved is said to be needed still: 1 s or more, the same at all brokers",
        ),
    ),
    *_keys(
        "[[network.links]]",
        ("to", '"south"', "the neighbour's name"),
        ("address", '"south.example:1883"', "where to dial it; left out: it dials"),
        ("tls", "true", "encrypt"),
        ("authorities", '"network.crt"', "a file of certificates to trust, in place of the machine's"),
        ("rate", '"50KB/s"', "to send no faster; also what can be reserved"),
        ("speed", '"1ms/KB"', "what is expected before anything was measured"),
    ),
)

PROPERTIES: tuple[Property, ...] = (
    Property("filter", "SUBSCRIBE", "speed > 50 AND kind = 'car'", "only events for which this is true"),
    Property("max-delay", "SUBSCRIBE", "250ms", "how old a message may be when it comes"),
    Property("price", "SUBSCRIBE", "3", "what a message in time is worth; 1 if it is left out"),
    Property("reliability", "SUBSCRIBE", "0.95", "the on-time share asked for"),
    Property(
        "bandwidth", "SUBSCRIBE", "20KB/s", "to be reserved all the way, or `any`; on a SUBACK, what is"
    ),
    Property(
        "latency", "SUBSCRIBE", "100ms", "how long the reserved way may take; on a SUBACK, what it does"
    ),
    Property(
        "resume-after", "SUBSCRIBE", "north:1721", "the last message of an origin that one has; or `now`"
    ),
    Property("resume-late", "SUBSCRIBE", "all", "also what is too late by now"),
    Property("resume-until", "SUBSCRIBE", "north:1800", "no further: a range, and nothing stays subscribed"),
    Property("definite", "SUBACK", "true", "whether a guarantee that was refused is refused for good"),
    Property("outstanding", "SUBACK", "17", "how many messages come to who resumes"),
    Property("position", "SUBACK", "north:1738", "where an origin is"),
    Property("buffered", "SUBACK", "all", "whether this broker keeps all of these topics, or a `part`"),
    Property("gaps", "SUBACK", "1", "of a range: how many messages tell of what is missing"),
    Property("lost", "SUBACK", "12", "of a range: how much those tell of, at most"),
    Property("kept", "SUBACK", "1000", "of a range: how many messages there are"),
    Property("advertise", "CONNECT", "traffic/a4 = 15KB/s", "what one's events will take, for guarantees"),
    Property("$deadline", "PUBLISH", "10s", "the publisher's bound on a message's age"),
    Property("$importance", "PUBLISH", "7", "1 to 10: what a full buffer keeps longest"),
    Property("$key", "PUBLISH", "order-17", "its publisher's own name of it: it counts once"),
    Property("$signature", "PUBLISH", "…", "the control centre's, on a model or an alarm"),
    Property("$id", "a delivered PUBLISH", "north:1721", "its origin and number: what to resume after"),
    Property("$age", "a delivered PUBLISH", "42.5", "milliseconds since it was published"),
)
