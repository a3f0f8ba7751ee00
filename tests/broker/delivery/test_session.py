"""Are MQTT's promises kept: nothing twice, nothing lost without a reason, no more than the client takes?"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_hub, new_session

from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.publication import Publication
from betimes.broker.delivery.session import Session
from betimes.model.telemetry import Reason
from betimes.mqtt.packet_ids import PACKET_ID_MAX, PacketIds


def publication(payload: bytes = b"x", *, born_s: float = 0.0, **options: Any) -> Publication:
    return Publication(mqtt5.PublishPacket("t", payload, **options), "t", born_s=born_s)


def away(*, queue_bytes_max: int = 10**6) -> tuple[Session, Counter[Reason]]:
    lost: Counter[Reason] = Counter()
    session = new_session(queue_bytes_max=queue_bytes_max, lose=lambda _, reason, __: lost.update([reason]))
    session.expiry_s = 100.0
    return session, lost


def connected(**connect: Any) -> tuple[Client, Session]:
    client = Client(new_hub(), "c", session_expiry_interval=100, **connect)
    assert client.connection.session is not None
    return client, client.connection.session


def again(client: Client, **connect: Any) -> Client:
    client.connection.lost(0.0)
    return Client(client.hub, "c", clean_start=False, session_expiry_interval=100, **connect)


def offer(session: Session, *payloads: bytes, qos: int = 1) -> None:
    for payload in payloads:
        session.offer(Delivery(publication(payload), qos=qos), 0.0)


def payloads(packets: list[Any]) -> list[bytes]:
    return [each.payload for each in packets]


def test_who_is_away_gets_what_has_a_quality_later_and_the_rest_never():
    session, lost = away()
    offer(session, b"1", qos=1)
    offer(session, b"0", qos=0)
    assert len(session) == 1
    assert lost == {Reason.NOT_CONNECTED: 1}


@pytest.mark.mqtt("MQTT-3.3.4-9", "MQTT-4.9.0-1", "MQTT-4.9.0-2")
def test_no_more_is_in_flight_than_the_client_takes():
    client, session = connected(receive_max=2)
    offer(session, b"1", b"2", b"3", b"4")
    first, second = client.read()
    assert payloads([first, second]) == [b"1", b"2"]
    (third,) = client.ask(mqtt5.PubAckPacket(second.packet_id))
    assert third.payload == b"3"
    assert client.ask(mqtt5.PubAckPacket(second.packet_id)) == []  # once acknowledged is enough


def test_a_message_of_quality_0_waits_behind_others_but_needs_no_acknowledgement():
    client, session = connected(receive_max=1)
    offer(session, b"1", b"2")
    offer(session, b"0", qos=0)
    (first,) = client.read()
    assert payloads(client.ask(mqtt5.PubAckPacket(first.packet_id))) == [b"2", b"0"]


@pytest.mark.mqtt("MQTT-3.3.1-1", "MQTT-4.4.0-1")
def test_what_was_not_acknowledged_goes_again_in_order_and_marked():
    client, session = connected()
    offer(session, b"1", b"2")
    offer(session, b"3", qos=2)
    one, _, _ = client.read()
    client.send(mqtt5.PubAckPacket(one.packet_id))
    back = again(client)
    assert payloads(back.first) == [b"2", b"3"]
    assert all(each.duplicate for each in back.first)


@pytest.mark.mqtt("MQTT-4.3.3-4", "MQTT-4.3.3-5", "MQTT-4.3.3-6")
def test_after_a_pubrec_it_is_pubrel_that_goes_again():
    client, session = connected()
    offer(session, b"1", qos=2)
    (sent,) = client.read()
    (release,) = client.ask(mqtt5.PubRecPacket(sent.packet_id))
    assert isinstance(release, mqtt5.PubRelPacket)
    back = again(client)
    (repeated,) = back.first
    assert isinstance(repeated, mqtt5.PubRelPacket)
    back.send(mqtt5.PubCompPacket(sent.packet_id))
    assert not session.in_flight
    assert again(back).first == []


def test_a_new_connection_that_takes_less_gets_the_repetitions_one_by_one():
    client, session = connected()
    offer(session, b"1", b"2", b"3")
    offer(session, b"0", qos=0)
    back = again(client, receive_max=1)
    offer(session, b"4")
    seen = []
    got = [each for each in back.first if isinstance(each, mqtt5.PublishPacket)]
    while got:
        assert len([each for each in got if each.qos.value]) == 1
        seen += payloads(got)
        got = back.ask(mqtt5.PubAckPacket(got[0].packet_id or 0))
    assert seen == [b"1", b"2", b"3", b"4"]


def test_a_release_from_an_earlier_connection_makes_no_room_on_this_one():
    client, session = connected(receive_max=1)
    offer(session, b"1", qos=2)
    (sent,) = client.read()
    client.ask(mqtt5.PubRecPacket(sent.packet_id))
    back = again(client, receive_max=1)
    offer(session, b"2", b"3")
    (second,) = back.read()
    assert back.ask(mqtt5.PubCompPacket(sent.packet_id)) == []  # the client still has b"2" to acknowledge
    assert payloads(back.ask(mqtt5.PubAckPacket(second.packet_id))) == [b"3"]


@pytest.mark.mqtt("MQTT-4.13.1-1")
@pytest.mark.parametrize(
    ("qos", "answers"),
    [
        (1, [mqtt5.PubRecPacket]),
        (1, [mqtt5.PubCompPacket]),
        (2, [mqtt5.PubAckPacket]),
        (2, [mqtt5.PubCompPacket]),  # before PUBREC
        (2, [mqtt5.PubRecPacket, mqtt5.PubAckPacket]),
    ],
)
def test_an_acknowledgement_of_the_wrong_kind_ends_the_connection_and_changes_nothing_else(qos, answers):
    client, session = connected()
    offer(session, b"1", qos=qos)
    (sent,) = client.read()
    *right, wrong = answers
    for each in right:
        client.ask(each(sent.packet_id))
    assert goodbye(client.ask(wrong(sent.packet_id))) is mqtt5.DisconnectReasonCode.PROTOCOL_ERROR
    assert client.connection.closing
    (repeated,) = again(client).first
    assert repeated.packet_id == sent.packet_id
    assert isinstance(repeated, mqtt5.PubRelPacket if right else mqtt5.PublishPacket)


def test_an_acknowledgement_of_what_is_not_known_is_tolerated():
    client, session = connected()
    assert client.ask(mqtt5.PubAckPacket(9)) == client.ask(mqtt5.PubCompPacket(9)) == []
    (answer,) = client.ask(mqtt5.PubRecPacket(9))
    assert answer.reason_code is mqtt5.PubRelReasonCode.PACKET_ID_NOT_FOUND
    assert client.ask(mqtt5.PubRecPacket(9, reason_code=mqtt5.PubRecReasonCode.UNSPECIFIED_ERROR)) == []
    assert not session.acknowledged(9, 0.0)


def test_an_acknowledgement_that_is_late_by_a_connection_is_tolerated():
    client, session = connected()
    offer(session, b"1", b"2", qos=1)
    one, two = client.read()
    back = again(client, receive_max=1)  # it has been sent b"1" again, and b"2" not yet
    assert back.ask(mqtt5.PubRecPacket(two.packet_id))[0].reason_code is not mqtt5.PubRelReasonCode.SUCCESS
    assert payloads(back.ask(mqtt5.PubAckPacket(one.packet_id))) == [b"2"]


@pytest.mark.mqtt("MQTT-4.4.0-2")
def test_a_refusing_pubrec_ends_the_matter():
    client, session = connected(receive_max=1)
    offer(session, b"1", b"2", qos=2)
    (sent,) = client.read()
    refused = mqtt5.PubRecPacket(sent.packet_id, reason_code=mqtt5.PubRecReasonCode.UNSPECIFIED_ERROR)
    assert payloads(client.ask(refused)) == [b"2"]


@pytest.mark.mqtt("MQTT-2.2.1-4", "MQTT-4.3.2-1")
def test_a_packet_id_names_one_thing():
    client, session = connected()
    session._packet_ids = PacketIds(PACKET_ID_MAX - 1)
    offer(session, b"1", b"2", b"3")
    assert [each.packet_id for each in client.read()] == [PACKET_ID_MAX, 1, 2]
    session._packet_ids = PacketIds(PACKET_ID_MAX)
    offer(session, b"4")
    assert client.read()[0].packet_id == 3


@pytest.mark.long
def test_ids_that_have_run_out_are_waited_for():
    client, session = connected()
    for number in range(PACKET_ID_MAX):
        old = session.in_flight[number + 1] = Delivery(publication(), qos=2)
        old.packet_id, old.released = number + 1, True
    offer(session, b"1")
    assert client.read() == []
    assert payloads(client.ask(mqtt5.PubCompPacket(17))) == [b"1"]


@pytest.mark.mqtt("MQTT-3.3.2-5")
def test_what_is_too_late_is_dropped_when_its_turn_comes():
    session, lost = away()
    session.offer(Delivery(publication(b"void", message_expiry_interval=5), qos=1), 0.0)
    session.offer(Delivery(publication(b"bound"), qos=1, bound_s=5.0), 0.0)
    session.offer(Delivery(publication(b"deadline", user_properties=[("$deadline", "5s")]), qos=1), 0.0)
    session.offer(Delivery(publication(b"good", message_expiry_interval=50), qos=1), 0.0)
    client, _ = connected()
    session.connection = client.connection
    session.pump(6.0)
    (got,) = client.read()
    assert (got.payload, got.message_expiry_interval) == (b"good", 44)
    assert lost == {Reason.EXPIRED: 3}


def test_a_full_queue_drops_the_late_before_the_new():
    session, lost = away(queue_bytes_max=1000)
    for _ in range(2):
        session.offer(Delivery(publication(message_expiry_interval=5), qos=1), 0.0)
    session.offer(Delivery(publication(b"new"), qos=1), 1.0)
    assert lost == {Reason.QUEUE_FULL: 1}
    session.offer(Delivery(publication(b"new"), qos=1), 6.0)
    assert lost == {Reason.QUEUE_FULL: 1, Reason.EXPIRED: 2}
    assert len(session) == 1


def test_a_full_queue_is_searched_only_when_something_in_it_can_be_too_late():
    """A search of 40,000 small messages takes 40 ms, in which nobody is served."""
    session, lost = away(queue_bytes_max=1500)
    for expiry_s in (None, 50, 5):
        session.offer(Delivery(publication(message_expiry_interval=expiry_s), qos=1), 0.0)
    session.offer(Delivery(publication(b"new"), qos=1), 4.0)
    assert (lost, session._weeded_at_s) == ({Reason.QUEUE_FULL: 1}, -math.inf)
    session.offer(Delivery(publication(b"new"), qos=1, bound_s=60.0), 6.0)
    assert (lost[Reason.EXPIRED], session._weeded_at_s) == (1, 6.0)
    session.offer(Delivery(publication(b"new"), qos=1), 40.0)
    assert (lost[Reason.QUEUE_FULL], session._weeded_at_s) == (2, 6.0)
    for now_s in (50.0, 70.0):
        session.offer(Delivery(publication(b"new"), qos=1), now_s)
        assert session._weeded_at_s == now_s
    assert lost == {Reason.QUEUE_FULL: 2, Reason.EXPIRED: 3}


@pytest.mark.parametrize(
    ("bound_s", "options", "dies_at_s"),
    [
        (math.inf, {}, math.inf),
        (5.0, {}, 5.0),
        (5.0, {"message_expiry_interval": 3}, 3.0),
        (5.0, {"user_properties": [("$deadline", "2s")]}, 2.0),
    ],
)
def test_a_delivery_dies_when_the_first_of_its_bounds_passes(bound_s, options, dies_at_s):
    delivery = Delivery(publication(**options), bound_s=bound_s)
    assert delivery.dies_at_s() == dies_at_s
    if math.isfinite(dies_at_s):
        assert delivery.too_late(dies_at_s + 0.001)
    assert not delivery.too_late(min(dies_at_s, 1e9) - 0.001)


@pytest.mark.mqtt("MQTT-3.1.2-24", "MQTT-3.1.2-25")
def test_what_is_larger_than_the_client_takes_counts_as_lost_at_once_and_after_a_reconnection():
    client, session = connected(max_packet_size=100)
    offer(session, b"x" * 200, b"small")
    assert payloads(client.read()) == [b"small"]
    assert client.hub.counters.lost == {Reason.TOO_LARGE: 1}
    client, session = connected()
    offer(session, b"x" * 200, b"small")
    assert payloads(again(client, max_packet_size=100).first) == [b"small"]
    assert client.hub.counters.lost == {Reason.TOO_LARGE: 1}


def test_a_blocked_client_is_ready_again_when_its_socket_is():
    client, session = connected()
    client.connection.flow.blocked = True
    assert session.ready() is None
    offer(session, b"1", qos=0)
    assert client.read() == []
    client.connection.drained(0.0)
    assert payloads(client.read()) == [b"1"]
    assert session.ready() is client.connection


def test_the_end_returns_what_was_not_got():
    client, session = connected(receive_max=2)
    offer(session, b"1", b"2", b"3", qos=2)
    one, _ = client.read()
    client.ask(mqtt5.PubRecPacket(one.packet_id))
    assert [each.publication.packet.payload for each in session.end(0.0)] == [b"2", b"3"]
    assert not len(session)
    assert not session.in_flight


def test_a_publication_of_quality_2_is_known_from_its_taking_to_its_release():
    session = new_session()
    session.taken(5)
    assert session.incoming == {5}
    assert (session.released(5), session.released(5)) == (True, False)


def test_what_is_taken_back_was_in_flight_or_waits_as_far_as_there_is_room():
    session = new_session()
    packet = mqtt5.PublishPacket("t", b"x" * 300)
    in_flight, first, second = (Delivery(Publication(packet, "t", born_s=0.0), qos=1) for _ in range(3))
    in_flight.packet_id = 9
    assert [session.take_back(each, 0.0) for each in (in_flight, first, second)] == [True, True, False]
    assert session.in_flight == {9: in_flight}
    assert len(session) == 2
