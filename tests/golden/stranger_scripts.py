"""What does a broker, or a peer, say to a neighbour that speaks nonsense? A client plays the neighbour."""

from __future__ import annotations

import json

from tests.golden.harness import World
from tests.golden.packets import connect, ping, puback, publish, subscribe
from tests.golden.scripts import script

TOP = "sys_every = '0s'\n[buffer]\nkeep = false\n[network]\nsecret_file = 'network.secret'\n"
SECRET = b"a secret of the network"
SPACE = "x:0..100, 6 levels, delays in hops"


def _as_broker(name: str, *, version: str = "4", life: str = "7") -> bytes:
    user = [("$betimes-link", version), ("$betimes-broker", name), ("$betimes-life", life)]
    return connect(f"{name}->a", login=(name, SECRET), user=user)


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
        "another version": [_as_broker("x", version="3")],
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
        world.come(what, "a", *packets)
        world.run(0.25)
        world.drop(what)
    world.step("one that says nothing any more, and one of the same name that comes meanwhile")
    world.come("silent", "a", _as_broker("x"))
    world.come("rival", "a", _as_broker("x", life="8"))
    world.run(4.0)
    world.come("later", "a", _as_broker("x", life="9"))
    world.metrics("a")


def _as_peer(address: str | None, *, space: str = SPACE, version: str = "4", secret: bytes = b"") -> bytes:
    peer = [] if address is None else [("$betimes-peer", address)]
    user = [("$betimes-link", version), *peer, ("$betimes-life", "7"), ("$betimes-overlay", space)]
    return connect("x", login=("x", secret), user=user)


@script("strange-peers")
def strange_peers(world: World) -> None:
    world.peer("p", seed=1, published="x >= 0", space={"x": 100.0})
    strange = {
        "a secret": [_as_peer("z:1", secret=b"what")],
        "another version": [_as_peer("z:1", version="3")],
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
        world.come(what, "p", *packets)
        world.run(0.25)
        world.drop(what)
    world.step("one that says nothing any more")
    world.come("silent", "p", _as_peer("z:1"))
    world.run(17.0)
    world.step("what this peer does not publish is refused")
    world.come("writer", "p", connect("writer"))
    world.feed(
        "writer", publish("t", qos=1, packet_id=1, user=[("x", "-5")]), publish("t", qos=1, packet_id=2)
    )
    world.shut_down("p")
