"""Does only that wait which asks for a guarantee?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.guarantees.promised import NO_NETWORK, Promised, asks_for_guarantee
from betimes.mqtt.subscribe_options import read_wish


def ask(properties):
    went_on = []
    packet = mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("cars"), mqtt5.TopicFilter("ships")])
    asked = asks_for_guarantee(
        Client(new_hub()).connection,
        packet,
        read_wish(properties),
        lambda _connection, _packet, _now_s, promised: went_on.append(promised),
        0.0,
    )
    return asked, went_on


def test_who_asks_for_nothing_or_something_else_does_not_wait():
    assert ask([]) == (False, [])
    assert ask([("price", "3")]) == (False, [])


def test_without_a_network_everything_is_granted_with_a_word():
    for properties in ([("bandwidth", "any")], [("latency", "100ms")]):
        asked, (promised,) = ask(properties)
        assert asked
        assert {topic: (each.is_admitted, each.text) for topic, each in promised.items()} == {
            "cars": (True, NO_NETWORK),
            "ships": (True, NO_NETWORK),
        }


def test_what_is_not_supported_is_no_matter_of_quota():
    assert Promised(is_admitted=False, text="").code.value == 0x97
    assert Promised(is_admitted=False, text="", is_supported=False).code.value == 0x83
