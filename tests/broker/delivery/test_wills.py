"""Does a will wait until it is due, and say what its client wanted said?"""

from __future__ import annotations

from typing import Any

import mqtt5

from betimes.broker.delivery.wills import PendingWill, Wills, will_of


def word(client_id: str = "c", **options: Any) -> PendingWill:
    return PendingWill(will=mqtt5.Will("gone", **options), client_id=client_id, rights=None)


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
    packet = word(**said).packet()
    assert {name: getattr(packet, name) for name in said} == said
    assert word().packet().payload == b""


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
    packet = PendingWill(will=will, client_id="c", rights=None).packet()
    again = will_of(packet, 9)
    assert again.will_delay_interval == 9
    assert PendingWill(will=again, client_id="c", rights=None).packet().write() == packet.write()
