"""What does a broker say to who comes back? Scripts of sessions, a store, the buffer, and promises."""

from __future__ import annotations

import hashlib
import hmac
import json
import zlib
from collections.abc import Callable

from tests.golden.harness import World
from tests.golden.packets import (
    connect,
    disconnect,
    ping,
    puback,
    publish,
    pubrec,
    pubrel,
    subscribe,
    unsubscribe,
    will,
)
from tests.golden.scripts import script

QUIET = "sys_every = '0s'\n"
BARE = QUIET + "[buffer]\nkeep = false\n"


def _session_story(restart: Callable[[World], None]) -> Callable[[World], None]:
    """Return a script of a durable session, in the middle of which something happens to the broker."""

    def story(world: World) -> None:
        world.come("anna", "b1", connect("anna", session_expiry=600, clean=False))
        last = will("will/carl", b"carl is gone", will_delay=30, qos=1)
        world.come("carl", "b1", connect("carl", session_expiry=600, last_word=last))
        world.step("ben subscribes for as long as a session lives")
        world.come("ben", "b1", connect("ben", session_expiry=600, clean=False))
        wish = [("filter", "speed > 50"), ("max-delay", "100s"), ("price", "2")]
        world.feed("ben", subscribe(1, "will/#", ("t/#", 2)), subscribe(2, "road", qos=1, user=wish))
        world.feed("ben", subscribe(3, "$share/g/u", qos=1, subscription_id=9), subscribe(4, "later", qos=1))
        world.step("some is under way to ben, some from anna, one half done each way; something is retained")
        world.feed(
            "anna", publish("t/1", b"one", qos=1, packet_id=1), publish("t/2", b"two", qos=2, packet_id=2)
        )
        world.feed("anna", pubrel(2), publish("t/3", b"three", qos=2, packet_id=3))
        world.feed("ben", pubrec(2), puback(1), unsubscribe(5, "later"))
        world.feed("anna", publish("kept", b"for all", qos=1, packet_id=4, retain=True, user=[("a", "1")]))
        world.feed("anna", publish("short", b"of life", retain=True, message_expiry=30))
        world.feed("anna", publish("keyed", b"k", qos=1, packet_id=5, user=[("$key", "k1")]))
        world.run(1.0)
        world.step("ben vanishes, and misses something")
        world.drop("ben")
        for number, speed in enumerate((61, 40, 70), start=6):
            world.feed(
                "anna", publish("road", b"%d" % speed, qos=1, packet_id=number, user=[("speed", str(speed))])
            )
        world.feed("anna", publish("u", b"shared", qos=1, packet_id=9), publish("t/4", b"no promise"))
        world.drop("carl")
        world.run(5.0)
        restart(world)
        world.step("anna goes on; the key counts once, the half done is done")
        world.come("anna", "b1", connect("anna", session_expiry=600, clean=False))
        world.feed("anna", pubrel(3), publish("t/3", b"three", qos=2, packet_id=3, again=True))
        world.feed("anna", publish("keyed", b"k", qos=1, packet_id=5, again=True, user=[("$key", "k1")]))
        world.feed("anna", publish("t/5", b"after", qos=1, packet_id=10))
        world.step("ben comes back, and gets what waited")
        world.come("ben", "b1", connect("ben", session_expiry=600, clean=False, receive_max=4))
        for packet_id in range(2, 10):
            world.acknowledge("ben", packet_id)
        world.step("the will is told when it is due")
        world.run(25.0)
        world.step("what is retained, and still alive")
        world.come("dora", "b1", connect("dora"), subscribe(1, "kept", "short"))
        world.step("sessions end by their own bound")
        world.feed("ben", disconnect(0, session_expiry=3))
        world.run(5.0)
        world.come("ben", "b1", connect("ben", clean=False), subscribe(1, "#"), ping())
        world.metrics("b1")

    return story


def _killed(world: World) -> None:
    world.step("the broker is killed, and starts again 4 s later")
    world.kill("b1")
    world.run(4.0)
    world.start_again("b1")


def _nothing(world: World) -> None:
    world.step("nothing happens to the broker")
    world.run(4.0)


@script("session-stored-and-killed")
def stored_and_killed(world: World) -> None:
    world.broker("b1", "store = 'b1.db'\n" + BARE)
    _session_story(_killed)(world)


@script("session-stored")
def stored(world: World) -> None:
    world.broker("b1", "store = 'b1.db'\n" + BARE)
    _session_story(_nothing)(world)


@script("session-in-memory")
def in_memory(world: World) -> None:
    world.broker("b1", BARE)
    _session_story(_nothing)(world)


@script("session-in-memory-and-killed")
def in_memory_and_killed(world: World) -> None:
    world.broker("b1", BARE)
    _session_story(_killed)(world)


def _after(*tokens: str, **more: str) -> list[tuple[str, str]]:
    others = [(name.replace("_", "-"), value) for name, value in more.items()]
    return [("resume-after", each) for each in tokens] + others


FIRST = 1_700_000_100_000_000  # the number of the first message of a broker that starts with the world


def _of_b1(*numbers: int) -> str:
    return f"b1:{FIRST + numbers[0]}" + "".join(f",{each}" for each in numbers[1:])


@script("resume")
def resume(world: World) -> None:
    world.broker("b1", QUIET + "[buffer]\nmessages = 8\n")
    world.come("anna", "b1", connect("anna"))
    world.step("ben begins here, has two, and is away while ten come")
    world.come("ben", "b1", connect("ben"), subscribe(1, "#", user=_after("now")))
    world.feed("anna", publish("t/1", b"0"), publish("t/2", b"1"))
    world.drop("ben")
    for number in range(2, 8):
        user = [("speed", str(10 * number))] if number % 2 else []
        world.feed("anna", publish(f"t/{number % 3}", b"%d" % number, qos=number % 2, packet_id=1, user=user))
    world.feed("anna", *[publish("t/9", b"in a run %d" % number) for number in range(8, 12)])
    world.run(1.0)
    world.step("ben comes back: what was overwritten is told as a gap")
    world.come("ben", "b1", connect("ben"), subscribe(1, "#", user=_after(_of_b1(1))))
    world.step("others come back to less: a filter, a topic, holes, an identifier, QoS 1, a bound")
    tokens = {
        "carl": subscribe(1, "#", user=_after(_of_b1(3), filter="speed > 60")),
        "dora": subscribe(1, "t/9", qos=1, user=_after(_of_b1(5))),
        "emil": subscribe(1, "#", subscription_id=5, user=_after(_of_b1(4, 2, "3-5"))),  # type: ignore[arg-type]
        "fred": subscribe(1, "#", user=_after(_of_b1(4), max_delay="500ms")),
        "gina": subscribe(1, "#", user=_after(_of_b1(4), max_delay="500ms", resume_late="all")),
        "hans": subscribe(1, "t/0", "t/1", user=_after(_of_b1(4))),
    }
    for name, data in tokens.items():
        world.come(name, "b1", connect(name), data)
    world.step("tokens that are refused")
    world.come("ines", "b1", connect("ines"))
    for packet_id, token in enumerate(("b1", "b1:x", "b9:5", _of_b1(500), "b1:5,9"), start=1):
        world.feed("ines", subscribe(packet_id, "#", user=_after(token)))
    world.feed("ines", subscribe(8, "#", user=_after(_of_b1(4), _of_b1(5))))
    world.feed("ines", subscribe(9, "$share/g/t", user=_after("now")))
    world.step("all go on from there")
    world.feed(
        "anna", publish("t/9", b"12"), publish("t/0", b"13", qos=1, packet_id=2, user=[("speed", "99")])
    )
    world.metrics("b1")
    world.step("a broker that keeps nothing")
    world.broker("b2", BARE)
    world.come("jan", "b2", connect("jan"), subscribe(1, "#", user=_after("b2:5")))
    world.feed("jan", subscribe(2, "#", user=_after("b2:5", resume_until="+5")))


@script("ranges")
def ranges(world: World) -> None:
    world.broker("b1", QUIET + "[buffer]\nmessages = 6\n")
    world.come("anna", "b1", connect("anna"))
    for number in range(8):
        world.feed("anna", publish(f"t/{number % 2}", b"%d" % number, user=[("speed", str(number))]))
    world.come("ben", "b1", connect("ben"))
    world.step("a range, twice the same; one with a gap; one of a topic and a filter; up to now")
    for packet_id in (1, 2):
        world.feed("ben", subscribe(packet_id, "#", user=_after(_of_b1(3), resume_until=_of_b1(5))))
    world.feed("ben", subscribe(3, "#", user=_after(_of_b1(0), resume_until=_of_b1(4))))
    world.feed("ben", subscribe(4, "t/1", user=_after(_of_b1(2), resume_until=_of_b1(7), filter="speed > 4")))
    world.feed("ben", subscribe(5, "#", user=_after(resume_until="now")))
    world.feed("ben", subscribe(20, "#", user=_after(_of_b1(2), resume_until="+2")))
    world.feed("ben", subscribe(21, "t/0", user=_after(_of_b1(2), resume_until="+2")))
    for packet_id, until in enumerate(("+0", "+x", f"{_of_b1(3)},2"), start=22):
        world.feed("ben", subscribe(packet_id, "#", user=_after(_of_b1(2), resume_until=until)))
    world.feed("ben", subscribe(25, "#", user=_after("now", resume_until="+2")))
    world.feed("ben", subscribe(26, "#", user=_after(_of_b1(2), resume_until="+2", max_delay="1s")))
    world.step("ranges that are refused, and nothing stays subscribed")
    for packet_id, until in enumerate(("x", _of_b1(99), "b7:1"), start=6):
        world.feed("ben", subscribe(packet_id, "#", user=_after(_of_b1(3), resume_until=until)))
    world.feed("ben", subscribe(9, "#", user=_after(_of_b1(5), resume_until=_of_b1(3))))
    world.feed("anna", publish("t/1", b"more"))
    world.metrics("b1")


@script("overwriting")
def overwriting(world: World) -> None:
    parts = "".join(
        f"[[buffer.partitions]]\npattern = '{name}/#'\noverwrite = '{name}'\nmessages = 4\n"
        for name in ("lrp", "random", "pwp", "value-decay", "disconnection-aware")
    )
    world.broker("b1", QUIET + "[buffer]\noutage = '5s'\n" + parts)
    world.come("anna", "b1", connect("anna"))
    world.step("each part is filled three times over")
    names = ("lrp", "random", "pwp", "value-decay", "disconnection-aware", "none")
    for number in range(12):
        for name in names:
            user = [("$deadline", f"{20 - number}s"), ("$importance", str(number % 4 + 1))]
            world.feed("anna", publish(f"{name}/{number % 3}", b"%d" % number, user=user), silent=True)
        world.run(0.25)
    world.step("what is left of each")
    for name in names:
        world.come(name, "b1", connect(name), subscribe(1, f"{name}/#", user=_after(_of_b1(0))))
    world.metrics("b1")


SECRET = b"hush, control centre"


def _signed(payload: bytes, signature_of: bytes | None = None) -> list[tuple[str, str]]:
    said = hmac.new(SECRET, payload if signature_of is None else signature_of, hashlib.sha256).hexdigest()
    return [("$signature", said)]


def _model(learned_at_s: float, s_per_kb_mean: float, broker: str = "b1") -> bytes:
    """Write a model: a publisher far away, behind a link that is busy for about half of the time."""
    none = {"kind": "constant", "value": 0.0}
    brokers = [
        {"name": name, "processing_s": none, "processing_s_per_subscription": 0.0} for name in ("far", broker)
    ]
    link = {"source": "far", "target": broker, "reliability": 1.0, "delay_s": none}
    sample = [
        {"topic": "news", "attributes": {"level": float(level)}, "deadline_s": 1000.0, "weight": 1.0}
        for level in range(100)
    ]
    publisher = {
        "name": "p",
        "broker": "far",
        "rate_per_s": 10.0,
        "gaps_scv": 1.0,
        "topic": "",
        "attributes": {},
    }
    model = {
        "version": 1,
        "learned_at_s": learned_at_s,
        "over_s": 60.0,
        "brokers": brokers,
        "links": [link | {"s_per_kb": {"kind": "exponential", "mean": s_per_kb_mean}}],
        "publishers": [publisher | {"size_kb": {"kind": "constant", "value": 1.0}, "sample": sample}],
        "subscriptions": [],
        "waits": [],
    }
    return zlib.compress(json.dumps(model).encode(), 0)


@script("promises")
def promises(world: World) -> None:
    world.broker("b1", "control_secret_file = 'control.secret'\n" + BARE)
    world.come("control", "b1", connect("control"))
    world.come("ann", "b1", connect("ann"))
    asks = [("max-delay", "100ms"), ("reliability", "0.3")]
    world.step("no model has come yet")
    world.feed("ann", subscribe(1, "news", user=asks))
    world.step("a model that is not signed, and one that is")
    first, second = _model(100.0, 0.05), _model(200.0, 0.2)
    for packet_id, signed in ((1, _signed(first, b"other")), (2, _signed(first))):
        world.feed(
            "control", publish("$betimes/model", first, qos=1, packet_id=packet_id, user=signed), silent=True
        )
    world.step("who asks for little is admitted, who asks for much is refused")
    for number, share in enumerate(("0.2", "0.5", "0.9", "0.999"), start=2):
        world.feed(
            "ann", subscribe(number, f"news/{number}", user=[("max-delay", "100ms"), ("reliability", share)])
        )
        world.feed("ann", subscribe(number, "news", user=[("max-delay", "100ms"), ("reliability", share)]))
    world.feed(
        "ann",
        subscribe(7, "news", user=[("filter", "level < 10"), ("max-delay", "1s"), ("reliability", "0.9")]),
    )
    world.step("an older model is ignored, a newer one counts")
    world.feed(
        "control", publish("$betimes/model", second, qos=1, packet_id=3, user=_signed(second)), silent=True
    )
    world.feed(
        "control", publish("$betimes/model", first, qos=1, packet_id=4, user=_signed(first)), silent=True
    )
    world.feed(
        "ann", subscribe(8, "news", user=asks), unsubscribe(9, "news"), subscribe(10, "news", user=asks)
    )
    world.step("later the answer says how old the model is")
    world.run(1000.0)
    world.feed("ann", subscribe(11, "news", user=asks))
    world.step("a model that does not know this broker")
    third = _model(300.0, 0.2, "elsewhere")
    world.feed(
        "control", publish("$betimes/model", third, qos=1, packet_id=9, user=_signed(third)), silent=True
    )
    world.feed("ann", subscribe(13, "news", user=asks))
    world.step("alarms: signed and new, or nobody hears of them")
    world.feed("ann", subscribe(12, "$betimes/alarm/#"))
    topic = "$betimes/alarm/b1/ann"
    for number, key in ((1, topic), (1, topic), (2, "other"), (3, topic)):
        payload = json.dumps({"state": "begins", "number": number}).encode()
        signed = _signed(payload, key.encode() + b"\0" + payload)
        world.feed("control", publish(topic, payload, qos=1, packet_id=5, user=signed))
    world.metrics("b1")
