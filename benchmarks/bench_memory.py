"""By how much can hostile clients raise the memory of a broker, against the bound of one user?

Each attack meets a broker of its own; all clients are anonymous, and so are one user together. The bound of
one user is set lower than usual (`--user-memory`), so that a machine of any size can hold it, and the highest
RSS is compared with that.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import mqtt5
from bench_pings import Hostile, memory_mb, names, publish, subscribe
from mqtt_brokers import betimes, free_port, started

from betimes.mqtt.mqtt311 import written_length

PROPERTIES = 2_048
SETTLE_S = 0.5
Attack = Callable[[int], object]  # what it returns is kept until memory was measured


def with_properties(count: int) -> bytes:
    return written_length(5 * count) + b"\x26\x00\x00\x00\x00" * count


def retained_properties(port: int) -> object:
    client = Hostile(port, "hostile")
    for start in range(0, 2000, 100):
        data = b"".join(
            publish(f"t{start + n}", b"x", props=with_properties(PROPERTIES), qos=1, retain=True)
            for n in range(100)
        )
        client.ask(data, 4, 100)
    return client


def retained_levels(port: int) -> object:
    client = Hostile(port, "hostile")
    deep = "/".join("x" * 126)
    for start in range(0, 20_000, 500):
        client.ask(
            b"".join(publish(f"{start + n}/{deep}", b"x", qos=1, retain=True) for n in range(500)), 4, 500
        )
    return client


def deep_subscriptions(port: int) -> object:
    clients = []
    deep = "/".join("+" * 126)
    for number in range(20):
        client = Hostile(port, f"c{number}")
        for start in range(0, 4000, 1000):
            client.ask(subscribe([f"{number}-{start + n}/{deep}" for n in range(1000)]), 9)
        clients.append(client)
    return clients


def filtered_subscriptions(port: int) -> object:
    clients = []
    text = " OR ".join(f"(a{n} > {n} AND b{n} < {n})" for n in range(200))
    pairs = [("filter", text)]
    for number in range(20):
        client = Hostile(port, f"c{number}")
        asked = [mqtt5.TopicFilter(each) for each in names(100, f"{number}-")]
        client.ask(mqtt5.SubscribePacket(1, asked, user_properties=pairs).write(), 9)
        clients.append(client)
    return clients


def durable_sessions(port: int) -> object:
    for number in range(200):
        client = Hostile(port, f"c{number}", session_expiry_interval=1000)
        client.ask(subscribe(["#"], options=1), 9)
        client.close()
    client = Hostile(port, "hostile")
    for _ in range(20):
        client.ask(publish("t", b"x", qos=1) * 1000, 4, 1000)
    return client


def in_flight(port: int) -> object:
    readers = [Hostile(port, f"c{number}", receive_max=65_535) for number in range(20)]
    for number, reader in enumerate(readers):
        reader.ask(subscribe([f"t{number}"], options=1), 9)
    client = Hostile(port, "hostile")
    for number, reader in enumerate(readers):
        reader.socket.settimeout(1.0)
        client.ask(publish(f"t{number}", b"x" * 100_000, qos=1) * 200, 4, 200)
        with contextlib.suppress(TimeoutError):
            reader.read_until(3, 200)
    return readers, client


def wills(port: int) -> object:
    will = mqtt5.Will("w", payload=b"x" * 50_000, will_delay_interval=1000, user_properties=[("", "")] * 2000)
    for number in range(1000):
        Hostile(port, f"c{number}", session_expiry_interval=1000, will=will).close()
    return None


def incomplete_packets(port: int) -> object:
    clients = [Hostile(port, f"c{number}") for number in range(150)]
    for client in clients:
        with contextlib.suppress(OSError):
            client.send(b"\x30\xff\xff\xee\x01" + bytes(3_800_000))
    return clients


def unread(port: int) -> object:
    readers = [Hostile(port, f"c{number}") for number in range(100)]
    for number, reader in enumerate(readers):
        asked = [mqtt5.TopicFilter("t")]
        reader.ask(mqtt5.SubscribePacket(1, asked, subscription_id=number + 1).write(), 9)
    client = Hostile(port, "hostile")
    client.ask(publish("t", b"x" * 3_000_000, qos=1) * 5, 4, 5)
    return readers, client


def aliases(port: int) -> object:
    clients = [Hostile(port, f"c{number}") for number in range(100)]
    for client in clients:
        for alias in range(1, 101):
            packet = mqtt5.PublishPacket("x" * 60_000, b"", topic_alias=alias)
            with contextlib.suppress(OSError):
                client.send(packet.write())
    return clients


ATTACKS: dict[str, Attack] = {
    "2,000 retained messages full of empty user properties": retained_properties,
    "20,000 retained messages of 127 levels": retained_levels,
    "80,000 subscriptions of 127 levels": deep_subscriptions,
    "2,000 subscriptions with long content filters": filtered_subscriptions,
    "200 durable sessions, 20,000 publications": durable_sessions,
    "20 readers that acknowledge nothing, 400 MB": in_flight,
    "1,000 wills of 50 KB and 2,000 properties": wills,
    "150 incomplete packets of 4 MB": incomplete_packets,
    "100 readers that read nothing, 1.5 GB": unread,
    "100 clients with 100 aliases of 60 KB": aliases,
}


def measure(attack: Attack, user_memory_mb: int) -> float:
    """Return by how many megabytes one attack raises the memory of a broker."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "broker.toml"
        limits = f'[limits]\nuser_memory = "{user_memory_mb}MB"\n[buffer]\nkeep = false\n'
        config.write_text(f"port = {port}\nanonymous = true\n{limits}")
        with started(betimes(str(config)), port) as process:
            before_mb = memory_mb(process.pid)
            kept = attack(port)
            time.sleep(SETTLE_S)
            gained_mb = memory_mb(process.pid, "VmHWM") - before_mb
            del kept
    return gained_mb


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose name holds this text")
    parser.add_argument("--user-memory", type=int, default=100, help="bound of one user, in MB")
    arguments = parser.parse_args()
    worst_mb = 0.0
    for name, attack in ATTACKS.items():
        if arguments.only in name:
            gained_mb = measure(attack, arguments.user_memory)
            worst_mb = max(worst_mb, gained_mb)
            print(f"{gained_mb:8.1f} MB gained, bound {arguments.user_memory} MB: {name}", flush=True)
    if worst_mb > 1.5 * arguments.user_memory:
        sys.exit(1)


if __name__ == "__main__":
    main()
