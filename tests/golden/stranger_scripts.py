"""What does a broker, or a peer, say to a neighbour that speaks nonsense? A client plays the neighbour."""

from __future__ import annotations

import json

import mqtt5
from tests.broker.neighbours import NONCE, auth
from tests.golden.harness import World
from tests.golden.packets import connect, ping, puback, publish, subscribe
from tests.golden.scripts import script

from betimes.broker.links.handshake import METHOD
from betimes.broker.links.packets import VERSION

TOP = "sys_every = '0s'\n[buffer]\nkeep = false\n[network]\nsecret_file = 'network.secret'\n"
SPACE = "x:0..100, 6 levels, delays in hops"


def _as_broker(name: str, *, version: str = VERSION, life: str = "7", password: bytes | None = None) -> bytes:
    user = [("$betimes-link", version), ("$betimes-broker", name), ("$betimes-life", life)]
    return _as_neighbour(f"{name}->a", user, password)


def _as_neighbour(client_id: str, user: list[tuple[str, str]], password: bytes | None) -> bytes:
    return mqtt5.ConnectPacket(
        client_id,
        clean_start=True,
        password=password,
        authentication_method=METHOD,
        authentication_data=NONCE,
        user_properties=user,
    ).write()


def _said(topic: str, payload: object, packet_id: int = 1, *, sent: str = "1.0", qos: int = 1) -> bytes:
    text = payload if isinstance(payload, str) else json.dumps(payload)
    return publish(topic, text.encode(), qos=qos, packet_id=packet_id, user=[("$sent", sent)] if sent else [])


def _event(via: str | None) -> bytes:
    return publish("t", b"e", qos=1, packet_id=1, user=[] if via is None else [("$via", via)])


@script("strange-brokers")
def strange_brokers(world: World) -> None:
    world.broker("a", TOP)
    bulletin = {"broker": "x", "epoch": 7, "number": 1}
    wishes = {"whole": True, "removed": [], "added": [], "parts_to_come": 0}
    strange = {
        "another version": [_as_broker("x", version="4")],
        "the secret itself": [_as_broker("x", password=b"a secret of the network")],
        "our name": [_as_broker("a")],
        "no name": [_as_broker("")],
        "an unknown topic": [_as_broker("x"), _said("$betimes/other", "{}")],
        "a beat without a time": [_as_broker("x"), _said("$betimes/beat", "", sent="")],
        "a bulletin that is no JSON": [_as_broker("x"), _said("$betimes/bulletin", "{")],
        "a bulletin in the middle of another": [
            _as_broker("x"),
            _said("$betimes/bulletin", bulletin | wishes | {"parts_to_come": 1}),
            _said("$betimes/bulletin", bulletin | wishes | {"number": 2}, 2),
        ],
        "a bulletin that is missing": [
            _as_broker("x"),
            _said("$betimes/bulletin", bulletin | wishes),
            _said("$betimes/bulletin", bulletin | wishes | {"whole": False, "number": 9}, 2),
        ],
        "a signal that is none": [_as_broker("x"), _said("$betimes/signal", "[]")],
        "word of a session that is none": [_as_broker("x"), _said("$betimes/session", "{}")],
        "an event from nowhere": [_as_broker("x"), _event(None)],
        "an event that goes nowhere": [_as_broker("x"), _event("x:1 0 1.0 - 0 -")],
        "QoS 0": [_as_broker("x"), _said("$betimes/beat", "", qos=0)],
        "an acknowledgement of nothing": [_as_broker("x"), puback(77)],
        "a subscription": [_as_broker("x"), subscribe(1, "t")],
        "a ping": [_as_broker("x"), ping()],
    }
    for what, packets in strange.items():
        world.step(what)
        world.come_as_neighbour(what, "a", *packets)
        world.run(0.25)
        world.drop(what)
    world.step("one that says nothing any more, and one of the same name that comes meanwhile")
    world.come_as_neighbour("silent", "a", _as_broker("x"))
    world.come_as_neighbour("rival", "a", _as_broker("x", life="8"))
    world.run(4.0)
    world.come_as_neighbour("later", "a", _as_broker("x", life="9"))
    world.step("one that proves another secret, and one that proves nothing and sends an event")
    world.come("wrong", "a", _as_broker("y"), auth(b"p" * 32).write())
    world.come("eager", "a", _as_broker("y"), _event("y:1 0 1.0 - 0 - a"))
    world.metrics("a")


def _as_peer(
    address: str | None, *, space: str = SPACE, version: str = VERSION, password: bytes | None = None
) -> bytes:
    peer = [] if address is None else [("$betimes-peer", address)]
    user = [("$betimes-link", version), *peer, ("$betimes-life", "7"), ("$betimes-overlay", space)]
    return _as_neighbour("x", user, password)


@script("strange-peers")
def strange_peers(world: World) -> None:
    world.peer("p", seed=1, published="x >= 0", space={"x": 100.0})
    strange = {
        "a secret": [_as_peer("z:1", password=b"what")],
        "another version": [_as_peer("z:1", version="4")],
        "a broker": [_as_peer(None)],
        "no address": [_as_peer("z")],
        "our address": [_as_peer("p:1")],
        "another space": [_as_peer("z:1", space="y:0..1")],
        "an unknown topic": [_as_peer("z:1"), _said("$betimes/other", "{}")],
        "a letter that is none": [_as_peer("z:1"), _said("$betimes/peer", "{}")],
        "gossip that is none": [_as_peer("z:1"), _said("$betimes/gossip", "{")],
        "an event from nowhere": [_as_peer("z:1"), _event(None)],
        "a subscription": [_as_peer("z:1"), subscribe(1, "t")],
        "an acknowledgement of nothing": [_as_peer("z:1"), puback(77)],
    }
    for what, packets in strange.items():
        world.step(what)
        world.come_as_neighbour(what, "p", *packets)
        world.run(0.25)
        world.drop(what)
    world.step("one that says nothing any more")
    world.come_as_neighbour("silent", "p", _as_peer("z:1"))
    world.run(17.0)
    world.step("one at whose address there is nothing")
    world.come_as_neighbour("nowhere", "p", _as_peer("z:2"), is_there=False)
    world.run(0.25)
    world.step("what this peer does not publish is refused")
    world.come("writer", "p", connect("writer"))
    world.feed(
        "writer", publish("t", qos=1, packet_id=1, user=[("x", "-5")]), publish("t", qos=1, packet_id=2)
    )
    world.shut_down("p")
