"""What does one broker say to its clients? Scripts of MQTT 5 and 3.1.1, without a network."""

from __future__ import annotations

from typing import Any

from tests.golden.harness import World
from tests.golden.packets import (
    connect,
    disconnect,
    packet,
    ping,
    puback,
    publish,
    pubrel,
    subscribe,
    text,
    unsubscribe,
    will,
)
from tests.golden.scripts import script

BARE = "sys_every = '0s'\n[buffer]\nkeep = false\n"  # a broker that only passes on


@script("mqtt5-qos")
def qos_levels(world: World) -> None:
    world.broker("b1", BARE)
    world.step("a client without a name, and two with one, connect")
    world.come("nameless", "b1", connect(""))
    world.come("anna", "b1", connect("anna", keep_alive=30))
    world.come("ben", "b1", connect("ben", receive_max=2, session_expiry=60, clean=False))
    world.step("ben subscribes with three levels, and an identifier")
    world.feed("ben", subscribe(1, ("a/0", 0), ("a/1", 1), ("a/2", 2)))
    world.feed("ben", subscribe(2, "a/+", qos=2, subscription_id=300))
    for level in range(3):
        world.step(f"anna publishes with QoS {level}")
        for topic in ("a/0", "a/1", "a/2"):
            payload = f"{topic} at {level}".encode()
            world.feed("anna", publish(topic, payload, qos=level, packet_id=10 * level + int(topic[-1])))
        for packet_id in range(20, 23) if level == 2 else ():
            world.feed("anna", pubrel(packet_id))
    world.step("ben acknowledges, one by one: what waits goes on")
    for packet_id in range(1, 9):
        world.acknowledge("ben", packet_id)
    world.step("a repetition of QoS 2 counts once; a PUBREL of nothing is told so")
    world.feed("anna", publish("a/2", b"twice", qos=2, packet_id=5))
    world.feed("anna", publish("a/2", b"twice", qos=2, packet_id=5, again=True))
    world.feed("anna", pubrel(5), pubrel(5))
    world.step("nobody wants it")
    world.feed(
        "anna", publish("nobody", qos=1, packet_id=6), publish("nobody", qos=2, packet_id=7), pubrel(7)
    )
    world.step("ben vanishes with two under way, and comes back")
    world.drop("ben")
    world.feed("anna", publish("a/1", b"meanwhile", qos=1, packet_id=8), publish("a/0", b"gone", qos=0))
    world.come("ben", "b1", connect("ben", clean=False, session_expiry=60))
    world.step("somebody else takes over the session")
    world.come("ben again", "b1", connect("ben", clean=True))
    world.metrics("b1")


@script("mqtt5-properties")
def message_properties(world: World) -> None:
    world.broker("b1", BARE)
    world.come("anna", "b1", connect("anna"))
    world.come("ben", "b1", connect("ben", max_packet=120))
    world.feed("ben", subscribe(1, "p/#", qos=1, user=[("other", "people's")]))
    world.step("properties of a message are passed on")
    world.feed(
        "anna",
        publish(
            "p/1",
            b"{}",
            qos=1,
            packet_id=1,
            payload_format=1,
            message_expiry=30,
            content_type="json",
            response_topic="answers",
            correlation=b"\x00\x01",
            user=[("speed", "61"), ("speed", "62"), ("kind", "car")],
        ),
    )
    world.feed("ben", puback(1))
    world.step("what is larger than ben takes is not sent")
    world.feed("anna", publish("p/2", b"x" * 200, qos=1, packet_id=2))
    world.step("what is too old is not sent; the rest says how much is left of its life")
    world.stall("ben")
    world.feed("anna", publish("p/3", b"short", qos=1, packet_id=3, message_expiry=2))
    world.feed("anna", publish("p/4", b"long", qos=1, packet_id=4, message_expiry=20))
    world.run(5.0)
    world.go_on("ben")
    world.step("a key counts once")
    for packet_id in (5, 6):
        world.feed("anna", publish("p/5", b"k", qos=1, packet_id=packet_id, user=[("$key", "one")]))
    world.step("no local, and retain as published")
    world.feed("anna", subscribe(7, ("p/6", 0x04), ("p/7", 0x08)))
    world.feed("anna", publish("p/6", b"own"), publish("p/7", b"kept", retain=True))
    world.metrics("b1")


@script("mqtt5-aliases")
def topic_aliases(world: World) -> None:
    world.broker("b1", BARE + "[limits]\ntopic_aliases = 2\nreceive = 2\n")
    world.step("the broker says what it takes; ben takes two aliases")
    world.come("anna", "b1", connect("anna"))
    world.come("ben", "b1", connect("ben", alias_max=2))
    world.feed("ben", subscribe(1, "#"))
    world.step("aliases of anna's, to ben's")
    world.feed("anna", publish("long/topic/one", b"1", alias=1), publish("", b"2", alias=1))
    world.feed("anna", publish("long/topic/two", b"3", alias=1), publish("", b"4", alias=1))
    world.feed("anna", publish("long/topic/three", b"5"), publish("long/topic/one", b"6", alias=2))
    world.step("an alias that stands for nothing, and one that is too high")
    world.come("carl", "b1", connect("carl"), publish("", b"?", alias=2))
    world.come("dora", "b1", connect("dora"), publish("t", b"?", alias=3))
    world.step("more of QoS 2 at once than the broker takes")
    world.come("emil", "b1", connect("emil"))
    world.feed("emil", *[publish("t", b"q", qos=2, packet_id=number) for number in (1, 2, 3)])


@script("mqtt5-filters")
def content_filters(world: World) -> None:
    world.broker("b1", BARE)
    world.come("anna", "b1", connect("anna"))
    world.come("ben", "b1", connect("ben"))
    world.come("mute", "b1", connect("mute", request_problem=0))
    world.step("filters, bounds and prices that are granted")
    cars = [("filter", "speed > 50 AND kind = 'car'"), ("max-delay", "10s"), ("price", "3")]
    world.feed("ben", subscribe(1, "road", qos=1, user=cars))
    world.feed("ben", subscribe(2, "lane/+", user=[("filter", "speed BETWEEN 10 AND 20 OR kind IN ('bus')")]))
    world.feed("ben", subscribe(3, "late", user=[("max-delay", "250ms")]))
    world.step("those that are refused, with the reason; mute hears no reason")
    for number, wish in enumerate(
        (
            ("filter", "speed >"),
            ("filter", "speed > 50 AND AND kind = 1"),
            ("filter", "lower(kind) = 'car'"),
            ("max-delay", "soon"),
            ("max-delay", "-1s"),
            ("price", "-2"),
            ("price", "dear"),
            ("reliability", "1.5"),
            ("bandwidth", "some"),
            ("bandwidth", "20KB/s"),
            ("resume-after", "b7:3"),
            ("resume-late", "all"),
        ),
        start=10,
    ):
        world.feed("ben", subscribe(number, "road", user=[wish]))
    world.feed("ben", subscribe(30, "road", user=[("price", "1"), ("price", "2")]))
    world.feed("mute", subscribe(31, "road", user=[("filter", "speed >")]))
    world.step("patterns that are none")
    world.feed("ben", subscribe(32, "$share/g"))
    world.feed("ben", subscribe(33, "a/" * 300))
    world.step("anna publishes")
    for topic, user in (
        ("road", [("speed", "61"), ("kind", "car")]),
        ("road", [("speed", "50"), ("kind", "car")]),
        ("road", [("kind", "car")]),
        ("lane/1", [("speed", "15")]),
        ("lane/1", [("speed", "fast"), ("kind", "bus")]),
        ("late", [("$deadline", "2s"), ("$importance", "2")]),
        ("late", [("$deadline", "never")]),
    ):
        world.feed("anna", publish(topic, b"e", qos=1, packet_id=1, user=user))
    world.feed("ben", puback(1))
    world.step("ben unsubscribes, also from what it never had")
    world.feed("ben", unsubscribe(40, "road", "never", "lane/+"))
    world.feed("anna", publish("road", b"e", qos=1, packet_id=2, user=[("speed", "61"), ("kind", "car")]))
    world.metrics("b1")


@script("mqtt5-endings")
def endings(world: World) -> None:
    world.broker(
        "b1",
        BARE + "[limits]\nkeep_alive = '20s'\npacket_size = '1.1KB'\nsessions = 6\nclient_id_letters = 20\n",
    )
    world.step("ping, and goodbyes of several kinds")
    world.come("anna", "b1", connect("anna", keep_alive=10), ping(), disconnect())
    world.come("ben", "b1", connect("ben", session_expiry=5), disconnect(0x04, session_expiry=9))
    world.come("carl", "b1", connect("carl"), disconnect(0x00, session_expiry=9))
    world.step("who is silent for one and a half of its keep alive is sent away; the broker bounds it")
    world.come("dora", "b1", connect("dora", keep_alive=4))
    world.come("emil", "b1", connect("emil", keep_alive=60))
    world.run(5.0)
    world.feed("dora", ping())
    world.run(6.5)
    world.run(25.0)
    world.step("a client of MQTT 3.1 is let in")
    world.come("old", "b1", packet(0x10, text("MQIsdp") + b"\x03\x02\x00\x00" + text("old")))
    world.feed("old", disconnect(v3=True))
    world.step("who is not let in")
    world.come("long", "b1", connect("a name with far more letters than allowed"))
    world.come("proof", "b1", connect("p", auth_method="SCRAM"))
    world.come("older", "b1", packet(0x10, text("MQIsdp") + b"\x02\x02\x00\x00" + text("older")))
    world.come("future", "b1", packet(0x10, text("MQTT") + b"\x06\x02\x00\x00\x00" + text("x")))
    world.come("rude", "b1", publish("t", b"before CONNECT"))
    world.come("early", "b1", ping())
    world.come("flags", "b1", packet(0x10, text("MQTT") + b"\x05\x01\x00\x00\x00" + text("x")))
    world.come("tiny", "b1", connect("tiny", max_packet=10))
    world.come("twice", "b1", connect("twice"), connect("twice"))
    for number in range(7):
        world.come(f"s{number}", "b1", connect(f"s{number}"))
    world.step("the broker ends")
    world.shut_down("b1")


@script("mqtt5-malformed")
def malformed(world: World) -> None:
    world.broker("b1", BARE + "[limits]\npacket_size = '1.1KB'\n")
    world.come("ben", "b1", connect("ben"), subscribe(1, "#", qos=2))
    wrong = {
        "a reserved type": b"\x00\x00",
        "wrong flags": b"\x80\x02\x00\x01",
        "a length that does not end": b"\x30\xff\xff\xff\xff\x7f",
        "too large": b"\x30\x80\x80\x01",
        "QoS 3": b"\x36\x05\x00\x01t\x00\x01",
        "no topic": publish("", b"x"),
        "a wildcard in a topic": publish("a/+", b"x"),
        "packet id 0": publish("t", qos=1, packet_id=0),
        "a null letter": publish("a\0b", b"x"),
        "bad UTF-8": packet(0x30, b"\x00\x02\xc3\x28", b"\x00"),
        "a property twice": packet(0x30, text("t"), b"\x04\x01\x00\x01\x00"),
        "an unknown property": packet(0x30, text("t"), b"\x02\x7f\x00"),
        "no filters": packet(0x82, b"\x00\x01\x00"),
        "a bad pattern": subscribe(1, "a#"),
        "reserved options": subscribe(1, ("a", 0xC0)),
        "from a broker": packet(0xD0),
        "shorter than it says": packet(0x40, b"\x00"),
        "identifier 0": subscribe(1, "a", subscription_id=0),
        "a topic that is longer than its packet": b"\x30\x03\x00\x09t",
        "no properties": b"\x30\x03\x00\x01t",
        "properties that are longer than their packet": b"\x30\x04\x00\x01t\x09",
        "a property that is longer than all of them": packet(0x30, text("t"), b"\x04\x03\x00\x09t"),
        "a property of a broker's": packet(0x30, text("t"), b"\x03\x21\x00\x01"),
        "a payload format of 2": publish("t", payload_format=2),
        "an empty filter": subscribe(1, ""),
        "a filter without options": packet(0x82, b"\x00\x01\x00", text("a")),
        "retain handling 3": subscribe(1, ("a", 0x30)),
        "QoS 3 of a subscription": subscribe(1, ("a", 0x03)),
        "no-local on a shared subscription": subscribe(1, ("$share/g/a", 0x04)),
        "an answer of a broker's": packet(0x90, b"\x00\x01\x00\x00"),
        "AUTH without a method": packet(0xF0, b"\x18\x00"),
        "AUTH": packet(0xF0, b"\x18\x04\x15\x00\x01m"),
        "a payload that is no text": publish("t", b"\xff", payload_format=1),
    }
    for what, data in wrong.items():
        world.step(what)
        world.come(what, "b1", connect("c"), publish("ok", b"before"), data)
    world.metrics("b1")


@script("mqtt3")
def version_3(world: World) -> None:
    world.broker("b1", BARE)
    world.step("two clients of version 3.1.1 and one of 5")
    last = will("gone", b"anna", qos=1, v3=True)
    world.come("anna", "b1", connect("anna", v3=True, keep_alive=10, last_word=last))
    world.come("ben", "b1", connect("ben", v3=True, clean=False))
    world.come("five", "b1", connect("five"), subscribe(1, "#", qos=2))
    world.step("a name is needed where the session is kept")
    world.come("nameless", "b1", connect("", v3=True, clean=False))
    world.come("nameless too", "b1", connect("", v3=True))
    world.step("ben subscribes; a filter that is wrong is a failure")
    world.feed(
        "ben", subscribe(1, ("t/0", 0), ("t/1", 1), ("t/2", 2), v3=True), subscribe(2, "gone", qos=1, v3=True)
    )
    world.feed("ben", subscribe(3, "$share/g", v3=True))
    world.step("anna and five publish")
    for level in range(3):
        world.feed("anna", publish(f"t/{level}", b"3", qos=level, packet_id=level, v3=True))
        world.feed("five", publish(f"t/{level}", b"5", qos=level, packet_id=level, user=[("a", "1")]))
    world.feed("anna", pubrel(2))
    world.feed("five", pubrel(2))
    for packet_id in range(1, 6):
        world.acknowledge("ben", packet_id)
    world.feed("ben", ping(), unsubscribe(4, "t/0", "none", v3=True))
    world.step("ben leaves and comes back; anna falls silent")
    world.feed("ben", disconnect(v3=True))
    world.feed("five", publish("t/1", b"meanwhile", qos=1, packet_id=9))
    world.run(16.0)
    world.come("ben", "b1", connect("ben", v3=True, clean=False))
    world.step("what is wrong ends without a word")
    world.feed("ben", b"\x36\x05\x00\x01t\x00\x01")


@script("retained")
def retained(world: World) -> None:
    world.broker("b1", BARE + "[limits]\nretained = 3\n")
    world.come("anna", "b1", connect("anna"))
    world.step("anna leaves messages; a fourth finds no room, an empty one clears")
    for number in range(4):
        kept: dict[str, Any] = {"message_expiry": 10} if number == 1 else {}
        world.feed("anna", publish(f"r/{number}", b"v%d" % number, qos=1, packet_id=1, retain=True, **kept))
    world.feed("anna", publish("r/0", b"", qos=1, packet_id=2, retain=True))
    world.feed("anna", publish("r/2", b"new", qos=1, packet_id=3, retain=True, user=[("speed", "9")]))
    world.step("ben gets what is retained, with what is left of its life")
    world.run(4.0)
    world.come("ben", "b1", connect("ben"), subscribe(1, ("r/+", 0x01)))
    world.feed("ben", puback(1), puback(2))
    world.step("not again where it has the subscription, or wants none, or is shared")
    world.feed("ben", subscribe(2, ("r/+", 0x10)), subscribe(3, ("r/#", 0x20)), subscribe(4, "$share/g/r/+"))
    world.step("only what passes a filter, and is not too late")
    world.feed(
        "ben",
        subscribe(5, "r/2", user=[("filter", "speed < 5")]),
        subscribe(6, "r/2", user=[("filter", "speed > 5")]),
    )
    world.feed("ben", subscribe(7, "+/1", user=[("max-delay", "1s")]))
    world.step("later, one has expired")
    world.run(7.0)
    world.come("carl", "b1", connect("carl"), subscribe(1, "#"))
    world.metrics("b1")


@script("wills")
def wills(world: World) -> None:
    world.broker("b1", BARE)
    world.come("ben", "b1", connect("ben"), subscribe(1, "will/#", qos=1))
    world.step("who leaves in order has no will; who vanishes, or says so, does")
    world.come("a", "b1", connect("a", last_word=will("will/a", b"a")), disconnect())
    world.come("b", "b1", connect("b", last_word=will("will/b", b"b", qos=1, retain=True)))
    world.drop("b")
    world.come("c", "b1", connect("c", last_word=will("will/c", b"c")), disconnect(0x04))
    world.step("a will is told late, and not if its client is back")
    late = will("will/d", b"d", will_delay=5, message_expiry=60, content_type="text", user=[("speed", "1")])
    world.come("d", "b1", connect("d", last_word=late, session_expiry=60))
    world.drop("d")
    world.run(3.0)
    world.come("d", "b1", connect("d", last_word=late, session_expiry=60, clean=False))
    world.run(4.0)
    world.drop("d")
    world.run(6.0)
    world.step("the end of the session is the end of the delay")
    world.come("e", "b1", connect("e", last_word=will("will/e", b"e", will_delay=50), session_expiry=2))
    world.drop("e")
    world.run(3.0)
    world.step("a will below $ is refused")
    world.come("f", "b1", connect("f", last_word=will("$SYS/f", b"f")))
    world.drop("f")
    world.step("a session that is taken over by a clean one speaks its will")
    world.come("g", "b1", connect("g", last_word=will("will/g", b"g")))
    world.come("g too", "b1", connect("g"))
    world.metrics("b1")


@script("shared")
def shared(world: World) -> None:
    world.broker("b1", BARE)
    world.come("anna", "b1", connect("anna"))
    for name in ("ben", "carl", "dora"):
        world.come(name, "b1", connect(name, session_expiry=100), subscribe(1, "$share/g/s/#", qos=1))
    world.feed("dora", subscribe(2, "s/#"))
    world.step("each of the group gets its share; dora all, besides")
    for number in range(5):
        world.feed("anna", publish("s/1", b"%d" % number, qos=number % 2, packet_id=number))
    world.step("one is gone: others take what it has not got when its session ends")
    world.drop("ben")
    for number in range(5, 8):
        world.feed("anna", publish("s/1", b"%d" % number, qos=1, packet_id=number))
    world.run(101.0)
    world.step("another group has its own; a member with a filter")
    world.feed(
        "dora",
        unsubscribe(3, "$share/g/s/#", "s/#"),
        subscribe(4, "$share/h/s/1", user=[("filter", "speed > 5")]),
    )
    world.feed(
        "anna", publish("s/1", b"slow", user=[("speed", "1")]), publish("s/1", b"fast", user=[("speed", "9")])
    )
    world.metrics("b1")


@script("runs")
def runs(world: World) -> None:
    world.broker("b1", BARE)
    world.come("anna", "b1", connect("anna"))
    world.come("plain", "b1", connect("plain"), subscribe(1, "run/#"))
    world.come("three", "b1", connect("three", v3=True), subscribe(1, "run/#", v3=True))
    world.come(
        "told", "b1", connect("told"), subscribe(1, "run/a", user=[("max-delay", "10s"), ("price", "2")])
    )
    world.come("numbered", "b1", connect("numbered"), subscribe(1, "run/+", subscription_id=7))
    world.come("small", "b1", connect("small", max_packet=30), subscribe(1, "run/a"))
    world.come("short", "b1", connect("short", alias_max=4), subscribe(1, "run/a"))
    world.step("many to one topic in one read")
    many = [publish("run/a", b"message %02d" % number) for number in range(12)]
    world.feed("anna", *many)
    world.step("the same in reads of 50 bytes")
    world.feed("anna", *many, sizes=50)
    world.step("the same, byte by byte, of four")
    world.feed("anna", *many[:4], sizes=1)
    world.step("topics that change, larger ones and a QoS 1 between them")
    mixed = [
        publish("run/b", b"1"),
        publish("run/b", b"2"),
        publish("run/a", b"x" * 40),
        publish("run/a", b"3"),
    ]
    world.feed("anna", *mixed, publish("run/a", b"4", qos=1, packet_id=1), publish("run/a", b"5"))
    world.feed(
        "anna", *[publish("run/a", b"p", user=[("speed", "1")])] * 3, publish("run/c", b"", retain=True)
    )
    world.step("a run to where nobody listens, to what is not allowed, and one that ends badly")
    world.feed("anna", *[publish("nobody", b"n")] * 4, *[publish("$SYS/x", b"n")] * 3)
    world.feed("anna", *many[:3], b"\x36\x05\x00\x01t\x00\x01")
    world.come("old", "b1", connect("old", v3=True))
    world.feed("old", *[publish("run/a", b"of three %d" % number, v3=True) for number in range(4)])
    world.metrics("b1")


@script("scheduled-client")
def scheduled_client(world: World) -> None:
    world.broker("b1", BARE + "[limits]\nqueue_size = '20KB'\n")
    world.come("anna", "b1", connect("anna"))
    wish = [("max-delay", "10s"), ("price", "2")]
    world.come(
        "slow",
        "b1",
        connect("slow"),
        subscribe(1, "s/+", user=wish),
        subscribe(2, "s/dear", user=[("max-delay", "20s"), ("price", "9")]),
    )
    world.step("slow reads nothing: what comes waits")
    world.stall("slow")
    for number in range(6):
        topic = "s/dear" if number % 3 == 2 else f"s/{number}"
        urgent = [("$deadline", "3s")] if number == 1 else []
        world.feed("anna", publish(topic, b"%d" % number * 400, qos=1, packet_id=1, user=urgent))
    world.step("4 s later it reads again, slowly: the dear first, what is late or hopeless is dropped")
    world.run(4.0)
    world.go_on("slow", kb=2.0, took_s=2.0)
    world.stall("slow")
    for number in range(4):
        world.feed("anna", publish(f"s/{number}", b"%d" % number * 1500, qos=1, packet_id=1))
    world.run(7.0)
    world.go_on("slow", kb=4.0, took_s=2.0)
    world.metrics("b1")
    world.step("more waits than the queue holds")
    world.stall("slow")
    for number in range(8):
        world.feed("anna", publish("s/x", b"%d" % number * 4000), silent=True)
    world.run(1.0)
    world.go_on("slow")
    world.metrics("b1")
    world.step("a plain subscriber that is slow, and may resume, is told what it lost")
    world.come("plain", "b1", connect("plain"), subscribe(1, "s/#", user=[("resume-after", "now")]))
    world.stall("plain")
    for number in range(8):
        world.feed("anna", publish("s/y", b"%d" % number * 4000), silent=True)
    world.go_on("plain")


@script("scheduled-bounds")
def scheduled_bounds(world: World) -> None:
    world.broker("b1", BARE)
    world.come("anna", "b1", connect("anna"))
    world.come("slow", "b1", connect("slow"), subscribe(1, "s", user=[("max-delay", "20s"), ("price", "2")]))
    world.step("a kilobyte takes a second; then messages of 4 KB wait, with bounds a tenth of a second apart")
    world.stall("slow")
    world.feed("anna", publish("s", b"first"))
    world.go_on("slow", kb=4.0, took_s=4.0)
    world.stall("slow")
    for tenth in range(20, 70):
        bound = [("$deadline", f"{tenth * 100}ms")]
        world.feed("anna", publish("s", b"." * 4000, content_type=f"{tenth}", user=bound), silent=True)
    world.step("what can still come in time is sent, and nothing else")
    world.go_on("slow")
    world.metrics("b1")


ACCESS = """\
topic read public/+
topic read $SYS/#
user ann
topic readwrite house/#
topic deny house/safe/#
topic write log/ann
pattern write sensor/%u/data
pattern read client/%c/#
"""
SCRYPT = "$scrypt$ln=4,r=8,p=1$"


@script("access")
def access(world: World) -> None:
    # Both passwords are "open": scrypt with 16 rounds and a fixed salt.
    hashed = "c2l4dGVlbiBieXRlcyAh$" + _hash(b"open", b"sixteen bytes !")
    passwords = f"ann:{SCRYPT}{hashed}\nbob:{SCRYPT}{hashed}\n"
    toml = "passwords = 'b1.passwords'\naccess = 'b1.access'\n" + BARE
    world.broker("b1", toml, b1_passwords=passwords, b1_access=ACCESS)
    world.step("wrong and right passwords")
    world.come("eve", "b1", connect("eve", login=("ann", b"wrong")), publish("house/x", b"?"))
    world.come("who", "b1", connect("who", login=("nobody", b"open")))
    world.come("ann", "b1", connect("ann", login=("ann", b"open")), ping())
    world.come("nameless", "b1", connect("nameless"))
    world.step("subscriptions that are allowed, and that are not")
    world.feed(
        "ann",
        subscribe(1, "house/#", "house/safe", "other", "client/ann/x", "client/bob/x", "$share/g/other"),
    )
    world.feed("nameless", subscribe(1, "public/+", "public/#", "#", "house/a"))
    world.step("publications likewise, of each QoS")
    for level in range(3):
        for topic in ("house/a", "house/safe/1", "log/ann", "sensor/ann/data", "$SYS/x"):
            world.feed("ann", publish(topic, b"w", qos=level, packet_id=level + 1))
    world.feed("nameless", publish("public/a", qos=1, packet_id=1))
    world.step("a client id that is another user's")
    world.come("bob", "b1", connect("ann", login=("bob", b"open")))
    world.step("the files change: rights are others, and bob is not known any more")
    world.come("bob", "b1", connect("bob", login=("bob", b"open")))
    world.read_files_again(
        "b1", b1_passwords=passwords.partition("\n")[0] + "\n", b1_access="user ann\ntopic read house/b\n"
    )
    world.feed("ann", publish("house/a", qos=1, packet_id=9), subscribe(2, "house/a", "house/b"))
    world.metrics("b1")
    world.step("a discreet broker gives no reason")
    world.broker("b2", "access = 'b1.access'\ndiscreet = true\n" + BARE)
    world.come(
        "carl", "b2", connect("carl"), subscribe(1, "house/a", "public/x"), publish("a", qos=1, packet_id=1)
    )


def _hash(password: bytes, salt: bytes) -> str:
    import base64
    import hashlib

    digest = hashlib.scrypt(password, salt=salt, n=16, r=8, p=1, dklen=32)
    return base64.b64encode(digest).decode().rstrip("=")


@script("system-topics")
def system_topics(world: World) -> None:
    world.broker("b1", "sys_every = '2s'\n")
    world.come("anna", "b1", connect("anna"))
    names = (
        "clients/#",
        "bytes/+",
        "messages/+",
        "publish/#",
        "subscriptions/+",
        "retained messages/count",
        "uptime",
    )
    world.feed("anna", subscribe(1, *[f"$SYS/broker/{each}" for each in names]))
    world.run(1.0)
    world.step("what changed is told, every two seconds")
    world.come("ben", "b1", connect("ben", session_expiry=60), subscribe(1, "t", qos=1))
    world.feed("anna", publish("t", b"1", retain=True), publish("$no", b"1"))
    world.drop("ben")
    world.run(2.5)
    world.step("a newcomer hears what is retained of it")
    world.come("carl", "b1", connect("carl"), subscribe(1, "$SYS/broker/clients/+", "#"))
    world.metrics("b1")


@script("pace")
def pace(world: World) -> None:
    world.broker("b1", BARE + "[limits]\npublish_rate = 5\nsubscriptions = 2\nqueue_size = '1KB'\n")
    world.come("anna", "b1", connect("anna"), subscribe(1, "a", "b"), subscribe(2, "c"), subscribe(3, "a"))
    world.feed("anna", *[publish("a", b"%d" % number) for number in range(8)])
    world.step("the queue of who is away is bounded")
    world.come("ben", "b1", connect("ben", session_expiry=60), subscribe(1, "a", qos=1))
    world.drop("ben")
    for number in range(4):
        world.feed("anna", publish("a", b"%d" % number * 300, qos=1, packet_id=1))
    world.come("ben", "b1", connect("ben", clean=False))
    world.step("what is longer than a name may be")
    world.feed("anna", publish("a/" * 250, qos=1, packet_id=2), publish("x", b"", qos=1, packet_id=3))
    world.metrics("b1")
