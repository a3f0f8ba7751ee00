"""The keys of a broker's configuration file, and the user properties of Betimes, for the reference.

Tests compare both with the code that reads them.
"""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A key of a broker's file: its table, an example value, and its meaning."""

    table: str
    name: str
    example: str
    meaning: str


class Property(NamedTuple):
    """A user property: the packet that carries it, an example value, and its meaning."""

    name: str
    packet: str
    example: str
    meaning: str


def _keys(table: str, *rows: tuple[str, str, str]) -> list[Key]:
    return [Key(table, *row) for row in rows]


_TLS = (
    ("certificate", '"broker.crt"', "certificate chain (PEM): this listener accepts TLS only"),
    ("key", '"broker.key"', "private key of the certificate; it may be in the same file"),
    ("client_ca", '"devices.crt"', "clients must present a certificate signed by one in this file"),
)

KEYS: tuple[Key, ...] = (
    *_keys(
        "",
        ("name", '"north"', "the broker's name; unique in a network"),
        ("host", '"0.0.0.0"', "the address to listen at; default: this machine only"),
        ("port", "1883", "default: 1883, or 8883 with a certificate"),
        *_TLS,
        ("anonymous", "true", "accept clients without a user name"),
        ("passwords", '"broker.passwords"', "password file, written by `betimes passwd`"),
        ("access", '"broker.acl"', "access control list, in Mosquitto's format"),
        ("metrics_port", "9101", "port of `/metrics` for Prometheus; left out: no metrics"),
        ("sys_every", '"10s"', "how often the broker updates topics below `$SYS`; `0s`: never"),
        ("discreet", "false", "`true`: reject subscriptions without a reason"),
        (
            "store",
            '"broker.db"',
            "the file of sessions and retained messages; left out: nothing survives a restart",
        ),
        ("store_sync", '"normal"', "or `full`, which also survives a power loss"),
        (
            "control_secret_file",
            '"secret"',
            "secret with which the broker verifies models of the control centre",
        ),
    ),
    *_keys(
        "[[listen]]",
        ("kind", '"websocket"', "or `mqtt`, the default"),
        ("host", '"127.0.0.1"', "as above, for this listener"),
        ("port", "8884", "default: 1883, 8883 with a certificate; 8083 and 8084 for websockets"),
        *_TLS,
    ),
    *_keys(
        "[limits]",
        ("connections", "10000", "open connections"),
        ("connection_rate", "1000", "new connections a second, of all clients together"),
        ("publish_rate", "500", "publications a second of one client; left out: no limit"),
        ("packet_size", '"4MB"', "largest packet that the broker accepts"),
        ("receive", "1000", "QoS 2 messages in flight from one client (receive maximum)"),
        ("topic_aliases", "100", "topic aliases of one client"),
        ("subscriptions", "10000", "subscriptions of one client"),
        ("sessions", "100000", "sessions, with and without a connection"),
        ("retained", "1000000", "retained messages"),
        ("retained_size", '"256MB"', "size of all retained messages"),
        ("keys", "200000", "`$key` values that the broker remembers for deduplication"),
        ("queue_size", '"16MB"', "size of the queue of one client"),
        ("connect_within", '"10s"', "time from the connection to its CONNECT"),
        ("keep_alive", '"1h"', "longest keep-alive that a client may ask for"),
        ("session_expiry", '"7d"', "longest session expiry that a client may ask for"),
        ("client_id_letters", "256", "length of a client id"),
    ),
    *_keys(
        "[telemetry]",
        ("directory", '"telemetry"', "directory of the files"),
        ("share", "0.01", "share of all events to record"),
        ("every", '"60s"', "how often the broker writes a file"),
        ("size", '"1GB"', "size of all files; the broker deletes the oldest"),
    ),
    *_keys(
        "[buffer]",
        ("keep", "true", "`false`: the broker keeps no messages, and subscribers cannot resume"),
        ("messages", "100000", "messages in the replay buffer"),
        ("size", '"64MB"', "size of the replay buffer"),
        (
            "overwrite",
            '"lrp"',
            "overwriting policy: `lrp`, `random`, `pwp`, `value-decay` or `disconnection-aware`",
        ),
        ("outage", '"12s"', "mean time that subscribers are away, for policies that need it"),
        ("fetch", '["news/#"]', "topics to fetch from other brokers even without local demand"),
        ("fetch_price", "0.000001", "price of one fetched message"),
        ("fetch_within", '"60s"', "delay bound of fetched messages"),
    ),
    *_keys(
        "[[buffer.partitions]]",
        ("pattern", '"alarms/#"', "topics of the messages in this partition"),
        ("filter", '"level > 3"', "content filter of this partition"),
        ("messages", "1000", "as above"),
        ("size", '"1MB"', "as above"),
        ("overwrite", '"value-decay"', "as above"),
    ),
    *_keys(
        "[network]",
        ("secret", '"at least sixteen letters"', "secret that all brokers of a network share"),
        ("secret_file", '"network.secret"', "file with the secret, in place of `secret`"),
        (
            "strategy",
            '"late-binding"',
            "scheduling strategy: `fifo`, `rl`, `eb`, `pc`, `ebpc:0.5`, `look-ahead`, …",
        ),
        ("queue", "100000", "messages that wait for links"),
        ("queue_size", '"256MB"', "size of the messages that wait for links"),
        ("beat", '"1s"', "interval of heartbeats between neighbours"),
        ("lost_after", '"3s"', "silence after which a broker considers a link lost"),
        (
            "refresh",
            '"10s"',
            "how often brokers refresh reservations: 1 s or more, the same at all brokers",
        ),
    ),
    *_keys(
        "[[network.links]]",
        ("to", '"south"', "name of the neighbour"),
        ("address", '"south.example:1883"', "address to dial; left out: the neighbour dials"),
        ("tls", "true", "encrypt the link"),
        ("authorities", '"network.crt"', "CA certificates to trust, in place of the system's"),
        ("rate", '"50KB/s"', "highest send rate; also the bandwidth that can be reserved"),
        ("speed", '"1ms/KB"', "transmission time assumed until the broker has measured it"),
    ),
)

PROPERTIES: tuple[Property, ...] = (
    Property("filter", "SUBSCRIBE", "speed > 50 AND kind = 'car'", "content filter"),
    Property("max-delay", "SUBSCRIBE", "250ms", "delay bound: the highest age at delivery"),
    Property("price", "SUBSCRIBE", "3", "price of a message that arrives in time; default 1"),
    Property("reliability", "SUBSCRIBE", "0.95", "on-time share to ask for"),
    Property(
        "bandwidth",
        "SUBSCRIBE",
        "20KB/s",
        "bandwidth to reserve along the route, or `any`; on a SUBACK, the reserved bandwidth",
    ),
    Property(
        "latency", "SUBSCRIBE", "100ms", "highest latency of the reserved route; on a SUBACK, its latency"
    ),
    Property(
        "resume-after",
        "SUBSCRIBE",
        "north:1721",
        "last message that the subscriber has of an origin; or `now`",
    ),
    Property("resume-late", "SUBSCRIBE", "all", "replay also messages whose bound has passed"),
    Property("resume-until", "SUBSCRIBE", "north:1800", "end of a range; the subscription ends there too"),
    Property("definite", "SUBACK", "true", "whether the refusal of a guarantee is final"),
    Property("outstanding", "SUBACK", "17", "number of messages that the broker will replay"),
    Property("position", "SUBACK", "north:1738", "current position of an origin"),
    Property("buffered", "SUBACK", "all", "whether this broker keeps `all` of these topics, or a `part`"),
    Property("gaps", "SUBACK", "1", "range: number of messages that report gaps"),
    Property("lost", "SUBACK", "12", "range: highest number of messages missing in those gaps"),
    Property("kept", "SUBACK", "1000", "range: number of messages in it"),
    Property(
        "advertise", "CONNECT", "traffic/a4 = 15KB/s", "bandwidth of the client's events, for guarantees"
    ),
    Property("$deadline", "PUBLISH", "10s", "the publisher's bound on the age of a message"),
    Property("$importance", "PUBLISH", "7", "1 to 10: a full replay buffer keeps important messages longer"),
    Property(
        "$key", "PUBLISH", "order-17", "the publisher's key for deduplication: the broker counts it once"
    ),
    Property("$signature", "PUBLISH", "…", "signature of the control centre, on a model or an alarm"),
    Property("$id", "a delivered PUBLISH", "north:1721", "origin and number: the value for `resume-after`"),
    Property("$age", "a delivered PUBLISH", "42.5", "milliseconds since the message was published"),
)
