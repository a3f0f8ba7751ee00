"""Does a will wait until it is due, and say what its client wanted said?"""

from __future__ import annotations

from typing import Any

import mqtt5
from tests.broker.talking import new_hub

from betimes.broker.delivery.wills import PendingWill, Wills, will_of, will_packet


def word(client_id: str = "c", **options: Any) -> PendingWill:
    return PendingWill(will=mqtt5.Will("gone", **options), session=new_hub().new_session(client_id, None))


def test_a_will_becomes_a_publication_with_all_it_says():
    said: dict[str, Any] = {
        "payload": b"lost",
        "qos": mqtt5.QoS.AT_LEAST_ONCE,
        "retain": True,
        "message_expiry_interval": 5,
        "content_type": "text/plain",
        "response_topic": "back",
        "correlation_data": b"1",
        "user_properties": [("a", "1")],
    }
    packet = will_packet(word(**said).will)
    assert {name: getattr(packet, name) for name in said} == said
    assert will_packet(word().will).payload == b""


def test_a_will_comes_when_it_is_due_unless_it_was_taken_back():
    wills = Wills()
    wills.put(word("a"), 5.0)
    wills.put(word("b"), 5.0)
    taken = wills.take("b")
    assert taken is not None
    assert taken.client_id == "b"
    assert list(wills.take_due(4.9)) == []
    assert [each.client_id for each in wills.take_due(5.0)] == ["a"]
    assert not len(wills)
    assert wills.take("a") is None


def test_a_will_can_be_had_again_from_its_publication():
    will = mqtt5.Will(
        "t",
        payload=b"x",
        qos=mqtt5.QoS.EXACTLY_ONCE,
        retain=True,
        payload_format_indicator=1,
        message_expiry_interval=5,
        content_type="text",
        response_topic="r",
        correlation_data=b"c",
        will_delay_interval=9,
        user_properties=[("a", "b")],
    )
    packet = will_packet(will)
    again = will_of(packet, 9)
    assert again.will_delay_interval == 9
    assert will_packet(again).write() == packet.write()
