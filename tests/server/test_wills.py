"""Does a will wait until it is due, and say what its client wanted said?"""

from __future__ import annotations

from typing import Any

import mqtt5

from betimes.server.wills import LastWord, Wills


def word(client_id: str = "c", **options: Any) -> LastWord:
    return LastWord(will=mqtt5.Will("gone", **options), client_id=client_id, rights=None)


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
