"""Does what a publisher sends twice under one key go out once, and nothing else?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.keeping import Shelf, kept_hub
from tests.broker.replay.test_buffer import keeping_hub
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.publish_keys import PublishKeys


def publish(client: Client, key: str, topic: str = "t", *, qos: int = 1, **more) -> int:
    """Publish under a key, and return the reason code of the acknowledgement."""
    (answer,) = client.publish(topic, key.encode(), qos=qos, user_properties=[("$key", key)], **more)
    return int(answer.reason_code.value)


def listening(hub: Hub) -> Client:
    ben = Client(hub, "ben")
    ben.subscribe("#")
    return ben


@pytest.mark.parametrize("qos", [1, 2])
def test_what_comes_again_under_its_key_is_acknowledged_and_goes_no_further(qos):
    hub = keeping_hub()
    ben = listening(hub)
    for number, name in enumerate(("anna", "anna", "carl"), 1):
        assert publish(Client(hub, name), "k1", qos=qos, packet_id=number) == 0
    assert ben.got() == [("t", b"k1")]
    assert hub.counters.received == 1
    assert hub.counters.repeated == 2


def test_another_key_or_topic_is_another_message():
    hub = new_hub()
    ben, anna = listening(hub), Client(hub, "anna")
    publish(anna, "k1")
    publish(anna, "k2")
    publish(anna, "k1", "u")
    assert len(ben.got()) == 3


def test_without_an_acknowledgement_nothing_is_a_repeat():
    hub = new_hub()
    ben, anna = listening(hub), Client(hub, "anna")
    for _ in range(2):
        anna.publish("t", user_properties=[("$key", "k1")])
        anna.publish("t", qos=1)
    assert len(ben.got()) == 4
    assert len(hub.publishing.repeats) == 0


def test_nobody_uses_up_the_keys_of_another_user():
    packet = mqtt5.PublishPacket("t", b"", user_properties=[("$key", "k1")])
    repeats = PublishKeys(10)
    assert not repeats.is_repeat("anna", "t", packet)
    assert not repeats.is_repeat("ben", "t", packet)
    assert not repeats.is_repeat(None, "t", packet)
    assert repeats.is_repeat("anna", "t", packet)


def test_only_so_many_keys_are_remembered_and_the_oldest_go():
    hub = new_hub(keys_max=3)
    ben, anna = listening(hub), Client(hub, "anna")
    for number in range(4):
        publish(anna, f"k{number}")
    publish(anna, "k3")
    publish(anna, "k0")
    assert [payload for _, payload in ben.got()] == [b"k0", b"k1", b"k2", b"k3", b"k0"]
    assert len(hub.publishing.repeats) == 3


def test_none_are_remembered_where_the_limit_says_so():
    hub = new_hub(keys_max=0)
    ben, anna = listening(hub), Client(hub, "anna")
    publish(anna, "k1")
    publish(anna, "k1")
    assert len(ben.got()) == 2


def test_what_was_refused_may_come_again():
    hub = new_hub(retained_max=0)
    anna = Client(hub, "anna")
    assert publish(anna, "k1", retain=True) == 0x97
    assert publish(anna, "k1", retain=True) == 0x97
    ben = listening(hub)
    publish(anna, "k1")
    assert ben.got() == [("t", b"k1")]


def test_keys_survive_a_restart_with_a_store():
    shelf = Shelf()
    hub, store = kept_hub(shelf, keys_max=2)
    anna = Client(hub, "anna")
    for key in ("k1", "k2", "k3"):
        publish(anna, key)
    store.commit()
    again, _ = kept_hub(shelf, keys_max=2)
    ben, anna = listening(again), Client(again, "anna")
    for key in ("k3", "k2", "k4", "k2", "k1"):
        publish(anna, key)
    assert [payload for _, payload in ben.got()] == [b"k4", b"k2", b"k1"]
