"""Are denials counted all, and logged a few a second?"""

from __future__ import annotations

from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.delivery.denials import LOGGED_PER_S, TEXT_LETTERS_MAX, DenialKind, Denials


def test_all_are_counted_and_a_flood_is_logged_by_its_number(caplog):
    denials = Denials()
    for _ in range(1000):
        denials.note(DenialKind.LOGIN, "10.0.0.7:5", "user x", 0.0)
    assert len(caplog.records) == LOGGED_PER_S
    assert caplog.records[0].getMessage() == "denied: login of '10.0.0.7:5': 'user x'"
    denials.note(DenialKind.PUBLISH, "c", "topic t", 1.0)
    assert "995 more denials were not logged" in caplog.records[-1].getMessage()
    assert denials.count == {DenialKind.LOGIN: 1000, DenialKind.PUBLISH: 1}


def test_a_client_s_own_words_are_quoted_and_cut(caplog):
    Denials().note(DenialKind.SUBSCRIBE, "a\nfake line", "x" * 10_000, 0.0)
    (said,) = (each.getMessage() for each in caplog.records)
    assert "\n" not in said
    assert len(said) < 2 * TEXT_LETTERS_MAX + 100


def test_a_broker_notes_what_it_denies_to_whom(caplog):
    access = AccessList.read("topic read open\n", "list")
    hub = new_hub(access_control=AccessControl(anonymous=True, access=access))
    client = Client(hub, "ann")
    client.publish("closed", qos=1)
    client.publish("closed")
    client.subscribe("secret")
    hub.change_access_control(AccessControl(), 0.0)
    Client(hub, "bob")
    assert hub.counters.denials.count == {DenialKind.PUBLISH: 2, DenialKind.SUBSCRIBE: 1, DenialKind.LOGIN: 1}
    assert "subscribe of 'ann': 'topic filter secret'" in caplog.text
