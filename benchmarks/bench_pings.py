"""How long does a quiet client wait for its PINGRESP beside the worst packets that the limits allow?

Each attack meets a broker of its own, with default settings. A quiet client sends PINGREQ every 5 ms, and the
worst answer counts. Beside it stands the processor time that the broker spent while one PINGREQ waited: the
longest turns of its loop, whatever else the machine does. `--only TEXT` chooses attacks by name;
`--assert-ms 200` fails where a ping waited longer.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import mqtt5
from mqtt_brokers import betimes, free_port, started
from rich.console import Console
from rich.table import Table

from betimes.mqtt.mqtt311 import written_length

HOST = "127.0.0.1"
PING_EVERY_S = 0.005
PACKET_BYTES = 4 * 1024 * 1024 - 64
QUIET_S = 0.3  # of pings before and after an attack
ANSWER_S_MAX = 120.0
KEPT = 200_000
NO_PROPERTIES = b"\x00"


class Hostile:
    """A client that sends bytes, and reads what is answered."""

    def __init__(self, port: int, client_id: str, *, version: int = 5, **connect: object) -> None:
        self.socket = socket.create_connection((HOST, port))
        self.socket.settimeout(ANSWER_S_MAX)
        self._unread = b""
        connect.setdefault("clean_start", True)
        if version == 5:
            self.send(mqtt5.ConnectPacket(client_id, **connect).write())  # type: ignore[arg-type]
        else:
            self.send(packet(0x10, b"\x00\x04MQTT\x04\x02\x00\x00", text(client_id)))
        self.read_one()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read_one(self) -> bytes:
        """Return the next packet; nothing where the broker hung up."""
        while True:
            end = packet_end(self._unread)
            if end:
                one, self._unread = self._unread[:end], self._unread[end:]
                return one
            try:
                data = self.socket.recv(1 << 20)
            except ConnectionError:
                return b""
            if not data:
                return b""
            self._unread += data

    def read_until(self, kind: int, times: int = 1) -> None:
        """Read packets up to the last one of a kind that is awaited, or up to the end."""
        while times:
            one = self.read_one()
            if not one or one[0] >> 4 == 14:
                return
            times -= one[0] >> 4 == kind

    def ask(self, data: bytes, kind: int, times: int = 1) -> None:
        """Send packets, and wait for the answers; what is sent may be more than the sockets hold."""
        sender = threading.Thread(target=self._send_all, args=(data,))
        sender.start()
        self.read_until(kind, times)
        with contextlib.suppress(OSError):
            sender.join()

    def _send_all(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the broker may have hung up
            self.socket.sendall(data)

    def close(self) -> None:
        self.socket.close()


def text(letters: str) -> bytes:
    data = letters.encode()
    return len(data).to_bytes(2, "big") + data


def packet(first: int, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return bytes((first,)) + written_length(len(body)) + body


def packet_end(data: bytes) -> int:
    """Return where the first packet ends; 0 if it is not complete."""
    length, at = 0, 1
    while True:
        if at >= len(data):
            return 0
        length |= (data[at] & 0x7F) << 7 * (at - 1)
        at += 1
        if data[at - 1] < 0x80:
            return at + length if len(data) >= at + length else 0


def properties(*pairs: tuple[str, str]) -> bytes:
    body = b"".join(b"\x26" + text(name) + text(value) for name, value in pairs)
    return written_length(len(body)) + body


def subscribe(filters: list[str], *, props: bytes = NO_PROPERTIES, options: int = 0) -> bytes:
    one = bytes((options,))
    return packet(0x82, b"\x00\x01", props, b"".join([text(each) + one for each in filters]))


def unsubscribe(filters: list[str]) -> bytes:
    return packet(0xA2, b"\x00\x01", NO_PROPERTIES, b"".join([text(each) for each in filters]))


def publish(
    topic: str, payload: bytes, *, props: bytes = NO_PROPERTIES, qos: int = 0, retain: bool = False
) -> bytes:
    packet_id = b"\x00\x01" if qos else b""
    return packet(0x30 | qos << 1 | retain, text(topic), packet_id, props, payload)


def names(count: int, prefix: str = "", suffix: str = "") -> list[str]:
    return [f"{prefix}{number:x}{suffix}" for number in range(count)]


def fill(port: int, packets: Iterator[bytes]) -> None:
    """Publish, and wait until all is taken in."""
    client = Hostile(port, "filler")
    chunk: list[bytes] = []
    size = 0
    for each in packets:
        chunk.append(each)
        size += len(each)
        if size > 1 << 20:
            client.send(b"".join(chunk))
            chunk, size = [], 0
    client.ask(b"".join(chunk) + b"\xc0\x00", 13)
    client.close()


def keep_many(port: int) -> None:
    fill(port, (publish(f"kept/{number % 1000}", b"payload") for number in range(KEPT)))


def retain_many(port: int) -> None:
    fill(port, (publish(f"r/{number % 70}/{number}", b"x", retain=True) for number in range(5000)))


Attack = Callable[[int], Iterator[None]]  # it prepares, yields, and attacks
ATTACKS: dict[str, Attack] = {}


def attack(name: str) -> Callable[[Attack], Attack]:
    def register(made: Attack) -> Attack:
        ATTACKS[name] = made
        return made

    return register


def simple(
    name: str,
    data: Callable[[], bytes],
    kind: int,
    *,
    times: int = 1,
    version: int = 5,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Register an attack that sends some bytes and awaits answers of a kind."""

    def run(port: int) -> Iterator[None]:
        if ready is not None:
            ready(port)
        sent, client = data(), Hostile(port, "hostile", version=version)
        yield
        client.ask(sent, kind, times)

    ATTACKS[name] = run


AFTER = properties(("resume-after", "b1:0"))
UNTIL = properties(("resume-after", "b1:0"), ("resume-until", "b1:150000"))
HOW_FAR = properties(("resume-after", "b1:0"), ("resume-until", "+10000000"))
BAD_FILTER = " AND ".join(f"(a{number} = 1 OR b{number} = 2)" for number in range(9))
LONG_FILTER = " OR ".join(f"(a{number} > {number} AND b{number} < {number})" for number in range(250))
NESTED_FILTER = "NOT (" * 31 + "a = 1 OR b = 2" + ")" * 31
IN_LIST = "a IN (" + ", ".join(f"'{number}'" for number in range(1200)) + ")"
LIKES = " OR ".join(f"a LIKE '%{number}%x%'" for number in range(400))
EMPTY_PROPERTY = b"\x26\x00\x00\x00\x00"


def filtered(text_: str, old: str, new: str, count: int) -> bytes:
    """Return SUBSCRIBEs with content filters that differ in a part."""
    texts = [text_.replace(old, new.format(number)) for number in range(count)]
    return b"".join(subscribe(["a"], props=properties(("filter", each))) for each in texts)


def empty_properties(count: int) -> bytes:
    return written_length(5 * count) + EMPTY_PROPERTY * count


def register_resuming() -> None:
    """Register SUBSCRIBEs that read the past."""
    kept, some = names(1000, "kept/"), names(20, "kept/")
    over = "over 200,000 kept"
    wild = ["#", *names(19, "+/")]
    passing = properties(("resume-after", "b1:0"), ("filter", "x > 1 OR y LIKE 'a%'"))
    simple(f"resume, 20 filters {over}", lambda: subscribe(some, props=AFTER), 9, ready=keep_many)
    simple(f"resume, 20 x # {over}", lambda: subscribe(wild, props=AFTER), 9, ready=keep_many)
    simple(f"resume, one filter {over}", lambda: subscribe(["kept/+"], props=AFTER), 9, ready=keep_many)
    simple(
        f"resume, a content filter {over}", lambda: subscribe(["kept/+"], props=passing), 9, ready=keep_many
    )
    simple(
        f"resume, 20 packets {over}", lambda: subscribe(some, props=AFTER) * 20, 9, times=20, ready=keep_many
    )
    simple("range, 1,000 filters", lambda: subscribe(kept, props=UNTIL), 9, ready=keep_many)
    simple(
        "range, 100 packets of 1,000 filters",
        lambda: subscribe(kept, props=UNTIL) * 100,
        9,
        times=100,
        ready=keep_many,
    )
    simple("range, how far 10,000,000 reach", lambda: subscribe(kept, props=HOW_FAR), 9, ready=keep_many)
    above = "b1:1-" + ",".join(str(number) for number in range(3, 24_000, 2))
    token = properties(("resume-after", above[:65_000]))
    simple("60 KB of a resume token", lambda: subscribe(["#"], props=token), 9, ready=keep_many)
    tokens = properties(*[("resume-after", f"b{number}:{number}") for number in range(PACKET_BYTES // 28)])
    simple("4 MB of resume-after", lambda: subscribe(["a"], props=tokens), 9)


def register_filters() -> None:
    """Register SUBSCRIBEs with content filters."""
    simple("150 refused 9x2 filters in 31 KB", lambda: filtered(BAD_FILTER, "", "", 150), 9, times=150)
    simple("15,000 refused 9x2 filters", lambda: filtered(BAD_FILTER, "", "", 15_000), 9, times=15_000)
    simple("2,000 different refused filters", lambda: filtered(BAD_FILTER, "a1", "c{}", 2000), 9, times=2000)
    simple("200 long filters", lambda: filtered(LONG_FILTER, "a1 ", "c{} ", 200), 9, times=200)
    simple("10,000 nested NOTs", lambda: filtered(NESTED_FILTER, "= 1", "= {}", 10_000), 9, times=10_000)
    simple("400 IN lists of 1,200", lambda: filtered(IN_LIST, "'1'", "'x{}'", 400), 9, times=400)
    simple("600 filters of 400 LIKEs", lambda: filtered(LIKES, "%1%", "%y{}%", 600), 9, times=600)
    short = properties(("filter", "a > 1"), ("max-delay", "1s"))
    simple("10,000 filters with a content filter", lambda: subscribe(names(10_000), props=short), 9)
    long = properties(("filter", LONG_FILTER))
    simple("2,000 filters with a long content filter", lambda: subscribe(names(2000), props=long), 9)


def register_subscribes() -> None:
    """Register SUBSCRIBEs of as many topic filters as fit, and UNSUBSCRIBE."""
    full = PACKET_BYTES
    wild, deep = "/" + "/".join("+" * 127), "/" + "/".join("x" * 126)
    overlapping = [f"+/{number % 70}/#" if number % 2 else "#" for number in range(256)]
    simple("256 wildcards over 5,000 retained", lambda: subscribe(overlapping), 9, ready=retain_many)
    shared = [f"$share/{number}/#" if number % 2 else "r/#" for number in range(10_000)]
    simple("10,000 # over 5,000 retained", lambda: subscribe(shared), 9, ready=retain_many)
    simple("4 MB of filters 'a'", lambda: subscribe(["a"] * (full // 4)), 9)
    simple(
        "4 MB of filters 'a', 3.1.1",
        lambda: packet(0x82, b"\x00\x01", (text("a") + b"\x00") * (full // 4)),
        9,
        version=4,
    )
    simple("4 MB of different short filters", lambda: subscribe(names(full // 9)), 9)
    simple("10,000 filters", lambda: subscribe(names(10_000)), 9)
    simple("10,000 wildcard filters", lambda: subscribe(names(10_000, suffix="/+/#")), 9)
    simple("10,000 filters of 128 levels", lambda: subscribe(names(10_000, suffix=wild)), 9)
    simple("4 MB of filters of 128 levels", lambda: subscribe(names(full // 262, suffix=wild)), 9)
    simple("10,000 deep filters without wildcards", lambda: subscribe(names(10_000, suffix=deep)), 9)
    simple("4 MB of texts of 60 KB", lambda: subscribe(names(full // 60_010, suffix="y" * 60_000)), 9)
    simple("4 MB of shared subscriptions", lambda: subscribe(names(full // 20, "$share/g/")), 9)
    groups = [f"$share/{number}/a" for number in range(10_000)]
    simple("10,000 shared subscriptions", lambda: subscribe(groups), 9)
    simple(
        "4 MB of empty user properties", lambda: subscribe(["a"], props=empty_properties(full // 5 - 10)), 9
    )
    simple("4 MB of UNSUBSCRIBE", lambda: unsubscribe(["a"] * (full // 3)), 11)
    simple("UNSUBSCRIBE of 10,000", lambda: unsubscribe(names(10_000)), 11)
    simple(
        "100,000 SUBSCRIBEs in one write",
        lambda: b"".join(subscribe([f"t{number % 9000}"]) for number in range(100_000)),
        9,
        times=100_000,
    )
    simple("500,000 PINGREQs in one write", lambda: b"\xc0\x00" * 500_000, 13, times=500_000)


def filtering(port: int) -> None:
    client = Hostile(port, "filtering", session_expiry_interval=1000)
    client.ask(subscribe(["#"], props=properties(("filter", "a > 1 OR b LIKE '%x%'"))), 9)


def crowd(port: int) -> None:
    client = Hostile(port, "crowd")
    client.ask(subscribe([f"$share/{number}/t" for number in range(9_000)]), 9)


def overlap(port: int) -> None:
    client = Hostile(port, "overlapping")
    patterns = ["/".join("+" if number >> bit & 1 else "x" for bit in range(13)) for number in range(8192)]
    client.ask(subscribe(patterns), 9)


def register_publishes() -> None:
    """Register what publishers can do."""
    full = empty_properties(PACKET_BYTES // 5 - 20)
    simple("PUBLISH with 4 MB of properties", lambda: publish("t", b"", props=full, qos=1), 4)
    simple(
        "400 retained PUBLISHes of 2,048 properties",
        lambda: publish("t", b"x", props=empty_properties(2048), qos=1, retain=True) * 400,
        4,
        times=400,
    )
    simple(
        "200,000 QoS 1 PUBLISHes in one write", lambda: publish("t", b"x", qos=1) * 200_000, 4, times=200_000
    )
    simple(
        "100,000 different topics in one write",
        lambda: b"".join(publish(f"t/{number}", b"x", qos=1) for number in range(100_000)),
        4,
        times=100_000,
    )
    as_json = b"\x13\x03" + text("application/json")
    for label, body in (("deep", b'{"a":' * 12_000 + b"1" + b"}" * 12_000), ("wide", b"[" + b"[]," * 21_000)):
        data = publish("t", body[:65_000], props=as_json, qos=1) * 60
        simple(f"60 PUBLISHes of {label} JSON", functools.partial(bytes, data), 4, times=60, ready=filtering)
    simple("20 PUBLISHes to 9,000 shares", lambda: publish("t", b"x", qos=1) * 20, 4, times=20, ready=crowd)
    met = publish("/".join("x" * 13), b"x", qos=1)
    other = [publish("/".join("x" * 12) + f"/x{number}", b"x", qos=1) for number in range(20)]
    simple(
        "40 PUBLISHes to 8,192 overlapping filters",
        lambda: b"".join(each + met for each in other),
        4,
        times=40,
        ready=overlap,
    )


@attack("50 wills of 60 KB and 2,000 properties")
def wills(port: int) -> Iterator[None]:
    yield
    will = mqtt5.Will("w", payload=b"x" * 60_000, user_properties=[("", "")] * 2_000)
    for number in range(50):
        Hostile(port, f"will{number}", will=will).close()


@attack("taking over a session with a full queue")
def taking_over(port: int) -> Iterator[None]:
    client = Hostile(port, "durable", session_expiry_interval=1000)
    client.ask(subscribe(["t"], options=1), 9)
    client.close()
    fill(port, (publish("t", b"x" * 10, qos=1) for _ in range(60_000)))
    yield
    for _ in range(3):
        client = Hostile(port, "durable", session_expiry_interval=1000, clean_start=False, receive_max=65_535)
        client.read_until(3, 2000)


def with_subscriptions(port: int, client_id: str, suffix: str = "", expiry_s: int = 1000) -> Hostile:
    client = Hostile(port, client_id, session_expiry_interval=expiry_s)
    for start in range(0, 10_000, 1000):
        client.ask(subscribe([f"{start + n:x}{suffix}" for n in range(1000)], options=1), 9)
    return client


@attack("disconnecting a client with 10,000 deep subscriptions")
def disconnecting(port: int) -> Iterator[None]:
    client = with_subscriptions(port, "many", "/" + "/".join("+" * 40), expiry_s=0)
    yield
    client.send(b"\xe0\x00")
    client.read_one()


@attack("clean start of a session with 10,000 subscriptions and a queue")
def clean_start(port: int) -> Iterator[None]:
    client = with_subscriptions(port, "many", "/" + "/".join("+" * 40))
    client.ask(subscribe(["q"], options=1), 9)
    client.close()
    fill(port, (publish("q", b"x" * 10, qos=1) for _ in range(60_000)))
    yield
    Hostile(port, "many")


@attack("200 sessions expire at once")
def expiring(port: int) -> Iterator[None]:
    clients = [Hostile(port, f"e{number}", session_expiry_interval=3) for number in range(200)]
    for client in clients:
        client.ask(subscribe(names(1000, suffix="/+/+/x"), options=1), 9)
    for client in clients:
        client.close()
    yield
    time.sleep(4.0)


@attack("DISCONNECT of 200 clients at once")
def leaving(port: int) -> Iterator[None]:
    clients = [Hostile(port, f"e{number}") for number in range(200)]
    for client in clients:
        client.ask(subscribe(names(1000, suffix="/+/+/x")), 9)
    yield
    for client in clients:
        client.close()
    time.sleep(1.0)


@attack("deleting 5,000 retained in one write")
def deleting(port: int) -> Iterator[None]:
    retain_many(port)
    client = Hostile(port, "hostile")
    data = b"".join(publish(f"r/{number % 70}/{number}", b"", retain=True) for number in range(5000))
    yield
    client.ask(data + b"\xc0\x00", 13)


@attack("one QoS 1 PUBLISH to 10,000 sessions")
def many_sessions(port: int) -> Iterator[None]:
    for number in range(10_000):
        client = Hostile(port, f"s{number}", session_expiry_interval=1000)
        client.ask(subscribe(["t"], options=1), 9)
        client.close()
    client = Hostile(port, "hostile")
    yield
    client.ask(publish("t", b"x" * 100, qos=1), 4)


@attack("a publisher to a slow reader")
def slow_reader(port: int) -> Iterator[None]:
    reader = Hostile(port, "reader")
    reader.ask(subscribe(["t"], options=0), 9)
    client = Hostile(port, "hostile")
    data = publish("t", b"x" * 1000) * 30_000 + b"\xc0\x00"
    yield
    client.ask(data, 13)
    reader.close()


@dataclass(kw_only=True)
class Waits:
    """How long the pings of a quiet client waited."""

    worst_s: float = 0.0
    worst_cpu_s: float = 0.0
    count: int = 0
    stop: threading.Event = field(default_factory=threading.Event)


def cpu_of(process: int) -> float:
    """Return the processor time of the broker's event loop, to the nanosecond."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def memory_mb(process: int, what: str = "VmRSS") -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) / 1000.0
    return 0.0


def ping(port: int, process: int, waits: Waits) -> None:
    """Ping until it is told to stop."""
    client = Hostile(port, "quiet", keep_alive=0)
    while not waits.stop.is_set():
        cpu_s, start_s = cpu_of(process), time.monotonic()
        client.send(b"\xc0\x00")
        client.read_one()
        waits.worst_s = max(waits.worst_s, time.monotonic() - start_s)
        waits.worst_cpu_s = max(waits.worst_cpu_s, cpu_of(process) - cpu_s)
        waits.count += 1
        time.sleep(PING_EVERY_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one attack did."""

    name: str
    worst_ms: float
    worst_cpu_ms: float
    cpu_ms: float
    gained_mb: float


def measure(name: str, made: Attack) -> Result:
    """Run one attack against a broker of its own."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "broker.toml"
        config.write_text(f'name = "b1"\nport = {port}\nanonymous = true\n')
        with started(betimes(str(config)), port) as process:
            run = made(port)
            next(run, None)
            waits = Waits()
            before_mb = memory_mb(process.pid)
            pinger = threading.Thread(target=ping, args=(port, process.pid, waits))
            pinger.start()
            time.sleep(QUIET_S)
            cpu_s = cpu_of(process.pid)
            next(run, None)
            time.sleep(QUIET_S)
            spent_s = cpu_of(process.pid) - cpu_s
            gained_mb = memory_mb(process.pid) - before_mb
            waits.stop.set()
            pinger.join()
    return Result(
        name=name,
        worst_ms=waits.worst_s * 1000,
        worst_cpu_ms=waits.worst_cpu_s * 1000,
        cpu_ms=spent_s * 1000,
        gained_mb=gained_mb,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="attacks whose name holds this text")
    parser.add_argument("--assert-ms", type=float, help="fail where a ping waited longer")
    arguments = parser.parse_args()
    for register in (register_resuming, register_filters, register_subscribes, register_publishes):
        register()
    table = Table(title="pings beside hostile packets")
    for column in (
        "packet",
        "worst ping ms",
        "broker's CPU ms while it waited",
        "CPU ms in all",
        "MB gained",
    ):
        table.add_column(column, justify="left" if column == "packet" else "right")
    results = []
    for name, made in ATTACKS.items():
        if arguments.only in name:
            found = measure(name, made)
            results.append(found)
            numbers = (found.worst_ms, found.worst_cpu_ms, found.cpu_ms, found.gained_mb)
            print(
                *(f"{each:8.0f}" for each in numbers),
                name,
                file=sys.stderr,
                flush=True,
            )
    for each in sorted(results, key=lambda one: -one.worst_ms):
        table.add_row(
            each.name,
            f"{each.worst_ms:.0f}",
            f"{each.worst_cpu_ms:.0f}",
            f"{each.cpu_ms:.0f}",
            f"{each.gained_mb:.1f}",
        )
    Console(width=130).print(table)
    if arguments.assert_ms and any(each.worst_ms > arguments.assert_ms for each in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
