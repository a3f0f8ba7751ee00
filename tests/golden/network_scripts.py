"""What do brokers say to each other? Scripts of links, guarantees, sessions that move, and peers."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tests.golden.harness import World
from tests.golden.packets import (
    connect,
    disconnect,
    ping,
    puback,
    pubcomp,
    publish,
    pubrec,
    subscribe,
    unsubscribe,
    will,
)
from tests.golden.scripts import script

QUIET = "sys_every = '0s'\n"
BARE = QUIET + "[buffer]\nkeep = false\n"
NETWORK = "[network]\nsecret_file = 'network.secret'\nbeat = '5s'\nlost_after = '15s'\n"


def _rated(rate: str, *neighbours: str) -> str:
    return "".join(f"[[network.links]]\nto = '{each}'\nrate = '{rate}'\n" for each in neighbours)


def _chain(world: World, names: str, *, top: str = BARE, **line: float) -> None:
    """Start brokers with a link between each and the next."""
    for name in names:
        world.broker(name, top + NETWORK)
    for one, other in pairwise(names):
        world.link(one, other, **line)
    world.run(1.0)


@script("link")
def link(world: World) -> None:
    world.step("two brokers meet")
    _chain(world, "ab")
    world.step("clients at both; ben at b wants some of it, with a bound and a price")
    world.come("anna", "a", connect("anna"))
    wish = [("filter", "speed > 50"), ("max-delay", "2s"), ("price", "3")]
    world.come("ben", "b", connect("ben", session_expiry=60), subscribe(1, "road", user=wish))
    world.feed("ben", subscribe(2, "t/#", qos=2))
    world.run(0.25)
    world.step("anna publishes: wanted there, not wanted, each QoS, with properties, retained")
    for speed in (61, 40):
        world.feed("anna", publish("road", b"car", qos=1, packet_id=1, user=[("speed", str(speed))]))
    for level in range(3):
        world.feed("anna", publish("t/1", b"q%d" % level, qos=level, packet_id=2, content_type="text"))
    world.feed("anna", publish("t/2", b"stays", retain=True, message_expiry=30))
    world.run(0.25)
    world.feed("ben", puback(1), pubrec(2), pubcomp(2))
    world.step("a run of plain ones")
    world.feed("anna", *[publish("t/3", b"run %d" % number) for number in range(5)])
    world.run(0.25)
    world.step("the other way, and a will")
    world.feed("anna", subscribe(3, "will/+", "t/9"))
    world.come("carl", "b", connect("carl", last_word=will("will/carl", b"gone")))
    world.run(0.25)
    world.drop("carl")
    world.feed("ben", publish("t/9", b"to both", qos=1, packet_id=7))
    world.run(0.25)
    world.step("ben leaves: a hears that nobody wants it")
    world.feed("ben", unsubscribe(4, "road", "t/#"))
    world.run(0.25)
    world.feed("anna", publish("t/1", b"?", qos=1, packet_id=8))
    world.step("beats, and goodbye")
    world.run(6.0)
    world.metrics("a")
    world.shut_down("b")
    world.run(0.25)
    world.metrics("a")


@script("link-refused")
def link_refused(world: World) -> None:
    world.broker("a", BARE + NETWORK)
    world.broker("b", BARE + "[network]\nsecret = 'the secret of another network'\n")
    world.broker("c", BARE)
    world.broker("d", BARE + NETWORK)
    world.step("another secret")
    world.link("a", "b")
    world.run(0.25)
    world.step("no broker of a network")
    world.link("a", "c")
    world.run(0.25)
    world.step("two links between the same")
    world.link("a", "d")
    world.link("d", "a")
    world.run(0.25)
    world.link("a", "d")
    world.run(0.25)


@script("link-store")
def link_store(world: World) -> None:
    world.broker("a", "store = 'a.db'\n" + BARE + NETWORK)
    world.broker("b", "store = 'b.db'\n" + BARE + NETWORK)
    world.link("a", "b")
    world.run(0.5)
    world.come("anna", "a", connect("anna"))
    world.come("ben", "b", connect("ben", clean=False, session_expiry=600), subscribe(1, "t", qos=1))
    world.run(0.25)
    world.step("b is killed while something is on its way; a keeps it")
    world.feed("anna", publish("t", b"one", qos=1, packet_id=1))
    world.kill("b")
    world.feed("anna", publish("t", b"two", qos=1, packet_id=2))
    world.run(0.5)
    world.step("a is killed, too; both start again")
    world.kill("a")
    world.start_again("a")
    world.start_again("b")
    world.link("a", "b")
    world.run(0.5)
    world.come("ben", "b", connect("ben", clean=False, session_expiry=600))
    world.feed("ben", puback(1), puback(2))
    world.run(0.25)
    world.metrics("a")
    world.metrics("b")


@script("link-slow")
def link_slow(world: World) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        world.broker(name, BARE + NETWORK + _rated("1KB/s", other))
    world.link("a", "b")
    world.run(0.5)
    world.come("anna", "a", connect("anna"))
    world.come("ben", "b", connect("ben"), subscribe(1, "cheap", user=[("max-delay", "4s"), ("price", "1")]))
    world.feed("ben", subscribe(2, "dear", user=[("max-delay", "6s"), ("price", "8")]), subscribe(3, "any"))
    world.run(0.25)
    world.step("seven messages of half a kilobyte wait for a link of one a second")
    for number in range(7):
        topic = ("cheap", "any", "dear")[number % 3]
        world.feed("anna", publish(topic, b"%d" % number * 500, qos=1, packet_id=1))
    world.step("the dear overtake; what is hopeless is dropped")
    world.run(6.0)
    world.metrics("a")
    world.metrics("b")


@script("link-strategies")
def link_strategies(world: World) -> None:
    for number, strategy in enumerate(("fifo", "eb", "pc", "ebpc:0.5", "rl", "look-ahead")):
        one, other = f"a{number}", f"b{number}"
        for name, neighbour in ((one, other), (other, one)):
            world.broker(name, BARE + NETWORK + f"strategy = '{strategy}'\n" + _rated("1KB/s", neighbour))
        world.step(f"strategy {strategy}")
        world.link(one, other)
        world.run(0.25)
        world.come(f"anna {number}", one, connect("anna"))
        world.come(f"ben {number}", other, connect("ben"))
        for topic, bound, price in (("x", "2s", "1"), ("y", "3s", "4"), ("z", "1500ms", "2")):
            world.feed(f"ben {number}", subscribe(1, topic, user=[("max-delay", bound), ("price", price)]))
        world.run(0.25)
        for each in range(6):
            world.feed(f"anna {number}", publish("xyz"[each % 3], b"%d" % each * 400), silent=True)
        world.run(3.0)
        for name in (one, other):
            world.kill(name)


@script("three-brokers")
def three_brokers(world: World) -> None:
    world.step("a ring of three, of which one link is slow")
    _chain(world, "abc")
    world.link("c", "a", s_per_kb=0.5, delay_s=0.2)
    world.run(1.5)
    world.come("anna", "a", connect("anna"))
    for name, broker in (("ben", "b"), ("carl", "c")):
        world.come(name, broker, connect(name), subscribe(1, "t", user=[("max-delay", "5s")]))
    world.run(0.5)
    world.feed("anna", publish("t", b"to both", qos=1, packet_id=1))
    world.run(0.5)
    world.step("the link between b and c is cut: carl is reached the other way")
    world.cut("b", "c")
    world.run(0.5)
    world.feed("anna", publish("t", b"the long way", qos=1, packet_id=2))
    world.run(1.5)
    world.step("b vanishes")
    world.kill("b")
    world.run(0.5)
    world.feed("anna", publish("t", b"to carl", qos=1, packet_id=3))
    world.run(1.0)
    world.metrics("a")


@script("guarantees")
def guarantees(world: World) -> None:
    neighbours = {"a": "bc", "b": "acd", "c": "abd", "d": "bc"}
    for name, others in neighbours.items():
        world.broker(name, BARE + NETWORK + _rated("60KB/s", *others))
    for one, other in (("a", "b"), ("b", "d"), ("a", "c"), ("c", "d")):
        world.link(one, other)
    world.run(1.0)
    world.step("a publisher says what its events will take")
    world.come("pub", "a", connect("pub", user=[("advertise", "cars = 20KB/s")]))
    world.come("bad", "a", connect("bad", user=[("advertise", "cars")]))
    world.run(0.5)
    for name in ("ann", "bob", "carl"):
        world.come(name, "d", connect(name))
    world.step("what fits is reserved; what does not is refused with what would; what is not advertised")
    world.feed("ann", subscribe(1, "cars", user=[("bandwidth", "20KB/s"), ("latency", "500ms")]))
    world.run(0.5)
    world.feed("bob", subscribe(1, "cars", user=[("bandwidth", "90KB/s")]))
    world.feed("carl", subscribe(1, "cars", user=[("bandwidth", "any"), ("latency", "1us")]))
    world.run(0.5)
    world.feed("bob", subscribe(2, "bikes", user=[("bandwidth", "1KB/s")]))
    world.run(1.0)
    world.feed("pub", publish("cars", b"promised", qos=1, packet_id=1))
    world.run(0.25)
    world.metrics("a")
    world.step("the link on the way is cut: another way is reserved")
    world.cut("b", "d")
    world.run(1.0)
    world.feed("pub", publish("cars", b"still", qos=1, packet_id=2))
    world.run(0.25)
    world.step("that one, too: the promise is lost")
    world.cut("c", "d")
    world.run(3.0)
    world.step("and comes back with a link")
    world.link("c", "d")
    world.run(3.0)
    world.step("given back")
    world.feed("ann", unsubscribe(3, "cars"))
    world.run(1.0)
    world.metrics("d")


@script("handover")
def handover(world: World) -> None:
    _chain(world, "abc")
    keeps: dict[str, Any] = {"clean": False, "session_expiry": 600}
    world.come("anna", "a", connect("anna"))
    world.step("ben has a session at a, and leaves")
    world.come("ben", "a", connect("ben", **keeps))
    world.run(0.5)
    world.feed(
        "ben",
        subscribe(1, "t/#", qos=2),
        subscribe(2, "road", qos=1, user=[("filter", "speed > 50"), ("price", "2")]),
    )
    world.run(0.25)
    world.feed(
        "anna", publish("t/1", b"half", qos=2, packet_id=1), publish("t/1", b"whole", qos=1, packet_id=2)
    )
    world.feed("ben", pubrec(1))
    world.drop("ben")
    for number in range(3):
        world.feed("anna", publish("t/2", b"%d" % number, qos=1, packet_id=3))
    world.step("it comes back at c: the session follows")
    world.come("ben", "c", connect("ben", **keeps))
    world.run(0.5)
    world.feed("ben", pubcomp(1), *[puback(packet_id) for packet_id in range(2, 7)])
    world.feed(
        "anna", publish("t/3", b"new", qos=1, packet_id=4), publish("road", b"r", user=[("speed", "60")])
    )
    world.run(0.5)
    world.step("it comes to b while it is still at c; the connection there ends")
    world.come("ben at b", "b", connect("ben", **keeps))
    world.run(0.5)
    world.feed("ben at b", puback(7), disconnect(0, session_expiry=0))
    world.run(0.5)
    world.step(
        "a client whom nobody knows is let in after the question; one who starts clean ends the old one"
    )
    world.come("dora", "c", connect("dora", **keeps))
    world.run(0.5)
    world.come("dora at a", "a", connect("dora", session_expiry=60))
    world.run(12.0)
    world.metrics("a")


@script("resume-in-a-network")
def resume_in_a_network(world: World) -> None:
    _chain(world, "ab", top=QUIET)
    world.come("anna", "a", connect("anna"))
    world.come("ben", "b", connect("ben"), subscribe(1, "t/#", user=[("resume-after", "now")]))
    world.run(0.25)
    for number in range(3):
        world.feed("anna", publish("t/1", b"%d" % number))
    world.run(0.25)
    world.step("ben is cut off, and comes back at a with what it has of a")
    world.drop("ben")
    world.run(0.25)
    for number in range(3, 5):
        world.feed("anna", publish("t/1", b"%d" % number))
    world.run(0.25)
    world.broker("c", QUIET + NETWORK + _rated("1KB/s", "a"))
    world.come(
        "early", "c", connect("early"), subscribe(1, "t", user=[("resume-after", "a:1700000100000001")])
    )
    token = [("resume-after", "a:1700000100000001"), ("resume-after", "b:1700000099999999")]
    world.come("ben", "a", connect("ben"), subscribe(1, "t/#", user=token))
    world.step("and at b, where something is missing")
    world.come("ben at b", "b", connect("ben b"), subscribe(1, "t/#", user=token))
    world.run(0.5)
    world.metrics("b")


@script("peers")
def peers(world: World) -> None:
    space = {"x": 100.0, "y": 100.0}
    world.step("a publisher, and three who join one after the other")
    world.peer("p", seed=1, published="x >= 0", space=space, places=4)
    world.peer("q", seed=2, join="p", wanted="x > 50 AND y < 20", space=space)
    world.run(1.0)
    world.peer("r", seed=3, join="p", wanted="x > 60 AND y < 20", space=space, delay_max=4.0)
    world.peer("s", seed=4, join="q", space=space)
    world.come("watch", "q", connect("watch"), subscribe(1, "#"))
    world.come("reader", "r", connect("reader"), subscribe(1, "plane", qos=1))
    world.come("asker", "s", connect("asker"), subscribe(1, "#", user=[("filter", "x < 10")]))
    world.run(2.0)
    world.step("events travel by their attributes")
    world.come("writer", "p", connect("writer"))
    for x, y in ((70, 10), (55, 10), (55, 30), (5, 90), (200, 10)):
        world.feed(
            "writer",
            publish("plane", b"%d,%d" % (x, y), qos=1, packet_id=1, user=[("x", str(x)), ("y", str(y))]),
        )
    world.run(0.5)
    world.step("the asker asks no more; q vanishes, and others mend")
    world.feed("asker", unsubscribe(2, "#"))
    world.kill("q")
    world.run(2.0)
    world.feed("writer", publish("plane", b"after", qos=1, packet_id=2, user=[("x", "80"), ("y", "5")]))
    world.run(0.5)
    world.metrics("p")
    world.step("how a peer tells that it is doing")
    world.feed("reader", subscribe(2, "$betimes/peer/#"))
    for packet_id in (3, 4):
        plane = [("x", "70"), ("y", "6")]
        world.feed("writer", publish("plane", b"watched", qos=1, packet_id=packet_id, user=plane))
        world.run(0.75)
    world.step("somebody with another space is refused")
    world.peer("z", seed=9, join="p", wanted="x > 5", space={"x": 100.0})
    world.run(1.5)


@script("peers-in-a-row")
def peers_in_a_row(world: World) -> None:
    space = {"x": 100.0}
    world.step(
        "a publisher that feeds one only: others are fed by those who want as much, and are in a hurry"
    )
    world.peer("p", seed=1, published="x >= 0", space=space, places=1)
    world.peer("q", seed=2, join="p", wanted="x > 50", space=space, delay_max=1.0, places=1)
    world.run(1.5)
    world.peer("r", seed=3, join="q", wanted="x > 75", space=space, delay_max=5.0)
    world.come("reader", "r", connect("reader"), subscribe(1, "#"))
    world.run(4.0)
    world.come("writer", "p", connect("writer"))
    for x in (80, 60, 10):
        world.feed("writer", publish("plane", b"%d" % x, qos=1, packet_id=1, user=[("x", str(x))]))
    world.run(0.5)
    world.step("how it is doing, and how it ends")
    world.feed("reader", subscribe(2, "$betimes/peer/#"))
    world.shut_down("q")
    world.run(1.0)


@script("telemetry")
def telemetry(world: World) -> None:
    for name in "ab":
        files = "control_secret_file = 'control.secret'\n" + BARE
        world.broker(name, files + "[telemetry]\ndirectory = 'seen'\nshare = 1\n" + NETWORK)
    world.link("a", "b")
    world.run(0.5)
    world.come("anna", "a", connect("anna"))
    wish = [("filter", "speed > 50"), ("max-delay", "2s"), ("price", "3")]
    world.come("ben", "b", connect("ben"), subscribe(1, "road", user=wish), subscribe(2, "t/#", qos=1))
    world.come("carl", "a", connect("carl"), subscribe(1, "$share/g/t/#", "road"))
    world.run(0.25)
    for number in range(4):
        car = [("speed", str(40 + 10 * number)), ("kind", "car"), ("$deadline", "4s")]
        world.feed("anna", publish("road", b"c%d" % number, user=car))
        world.feed("anna", publish("t/1", b"t%d" % number, qos=1, packet_id=1))
    world.run(0.25)
    world.stall("carl")
    world.feed("anna", *[publish("road", b"late", message_expiry=1, user=[("speed", "70")])] * 2)
    world.run(1.5)
    world.go_on("carl")
    world.feed("ben", unsubscribe(3, "t/#"))
    world.feed("anna", publish("nobody", b"?"), publish("$no", b"?"))
    world.run(0.25)
    for name in "ab":
        world.kill(name)
    world.telemetry("seen")


@script("guarantees-of-several")
def guarantees_of_several(world: World) -> None:
    for name, others in {"a": "b", "b": "ac", "c": "b"}.items():
        world.broker(name, BARE + NETWORK + "refresh = '2s'\n" + _rated("60KB/s", *others))
    for one, other in (("a", "b"), ("b", "c")):
        world.link(one, other)
    world.run(1.0)
    world.step("two publish the same, at two brokers; one leaves, and comes back with more")
    cars: dict[str, Any] = {"user": [("advertise", "cars = 10KB/s"), ("advertise", "bikes = 5KB/s")]}
    for name, broker in (("pub a", "a"), ("pub b", "b")):
        world.come(name, broker, connect(name, **cars))
    world.run(0.5)
    world.come("ann", "c", connect("ann", clean=False, session_expiry=600))
    world.run(0.5)
    world.feed("ann", subscribe(1, "cars", "bikes", user=[("bandwidth", "any"), ("latency", "1s")]))
    world.run(1.0)
    for topics in (("x = 1KB/s", "x = 2KB/s"), ("$x = 1KB/s",), ("x/# = 1KB/s",), ("x = much",)):
        world.come(topics[0], "a", connect("odd", user=[("advertise", each) for each in topics]))
    world.step("what cannot be guaranteed: patterns, and what is shared")
    world.feed("ann", subscribe(2, "cars/#", "$share/g/cars", user=[("bandwidth", "1KB/s")]))
    world.feed("ann", subscribe(3, "cars", user=[("latency", "soon")]))
    world.run(0.5)
    world.drop("pub b")
    world.run(1.0)
    world.come("pub b", "b", connect("pub b", user=[("advertise", "cars = 30KB/s")]))
    world.run(3.0)
    world.feed(
        "ann", unsubscribe(4, "bikes")
    )  # of two, the broker gives one back first: it is not said which
    world.run(0.5)
    world.step("ann vanishes: what is promised is given back; it comes back: it is asked for again")
    world.drop("ann")
    world.run(1.0)
    world.metrics("b")
    world.come("ann", "c", connect("ann", clean=False, session_expiry=600))
    world.run(1.0)
    world.metrics("b")


@script("handover-odd")
def handover_odd(world: World) -> None:
    _chain(world, "ab", delay_s=0.2)
    keeps: dict[str, Any] = {"clean": False, "session_expiry": 600}
    world.come("ben", "a", connect("ben", **keeps))
    world.run(1.0)
    world.feed("ben", subscribe(1, "t", qos=1))
    world.drop("ben")
    world.step("ben comes at b, sends before it is let in, and comes once more meanwhile")
    world.come("ben 1", "b", connect("ben", **keeps), subscribe(1, "u", qos=1))
    world.run(0.1)
    world.come("hasty", "b", connect("hasty", **keeps), *[ping()] * 102)
    world.come("ben 2", "b", connect("ben", **keeps))
    world.run(2.0)
    world.step("the link is cut in the middle of a question")
    world.come("dora", "a", connect("dora", **keeps))
    world.run(0.1)
    world.cut("a", "b")
    world.run(3.0)
    world.step("a session that is asked for is used again where it was")
    world.link("a", "b", delay_s=0.2)
    world.run(1.0)
    world.drop("ben 2")
    world.come("ben 3", "a", connect("ben", **keeps))
    world.run(0.1)
    world.come("ben 4", "b", connect("ben", **keeps))
    world.run(15.0)
    world.metrics("a")
    world.metrics("b")


@script("buffer-in-a-network")
def buffer_in_a_network(world: World) -> None:
    fetching = QUIET + "[buffer]\nfetch = ['t/#']\nfetch_within = '5s'\n"
    _chain(world, "ab", top=fetching)
    world.come("anna", "a", connect("anna"))
    world.feed("anna", *[publish("t/1", b"%d" % number) for number in range(4)], publish("v", b"not fetched"))
    world.run(0.5)
    world.step("nobody was at b; who comes there gets what b fetched")
    token = [("resume-after", "a:1700000099999999")]
    world.come("ben", "b", connect("ben"), subscribe(1, "#", user=token))
    world.feed("ben", subscribe(2, "t/#", user=[*token, ("resume-until", "now")]))
    world.come("carl", "b", connect("carl"), subscribe(1, "t/#", qos=1, user=token))
    world.metrics("b")
    world.step("a starts anew: numbers go on, and what it kept is gone")
    world.kill("a")
    world.run(1.0)
    world.start_again("a")
    world.link("a", "b")
    world.run(0.5)
    world.come("anna", "a", connect("anna"), publish("t/1", b"of another life"))
    world.run(0.5)
    world.come("dora", "a", connect("dora"), subscribe(1, "t/#", user=token))
