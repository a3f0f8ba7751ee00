"""Is each CONNECT answered as MQTT 5 has it, sections 3.1 and 3.2?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, new_connection, new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.core.connect import LINK
from betimes.broker.core.network import NO_NETWORK
from betimes.model.server_settings import Limits

Answer, Gone = mqtt5.ConnAckReasonCode, mqtt5.DisconnectReasonCode


def test_a_client_is_let_in_and_told_the_bounds():
    connack = Client(new_hub(receive_max=20, topic_aliases_max=5)).connack
    assert connack.reason_code is Answer.SUCCESS
    assert (connack.receive_max, connack.topic_alias_max, connack.session_present) == (20, 5, False)
    assert connack.max_packet_size == Limits().packet_bytes_max


@pytest.mark.mqtt("MQTT-3.1.3-6", "MQTT-3.1.3-7", "MQTT-3.2.2-16")
def test_a_client_without_a_name_gets_one():
    hub = new_hub()
    first, second = Client(hub, ""), Client(hub, "")
    assert first.connack.assigned_client_id != second.connack.assigned_client_id
    assert first.connack.assigned_client_id in hub.sessions


@pytest.mark.mqtt("MQTT-3.1.4-2", "MQTT-3.2.2-7")
def test_a_client_that_may_not_come_in_is_told_so():
    client = Client(new_hub(access_control=AccessControl()))
    assert client.connack.reason_code is Answer.BAD_USER_NAME_OR_PASSWORD
    assert client.connection.closing
    assert not client.hub.sessions


def test_more_sessions_than_allowed_are_refused():
    hub = new_hub(sessions_max=1)
    Client(hub, "a")
    assert Client(hub, "b").connack.reason_code is Answer.SERVER_BUSY
    assert Client(hub, "a").connack.reason_code is Answer.SUCCESS  # one that is there may come again


def test_a_longer_keep_alive_than_allowed_is_shortened():
    hub = new_hub(keep_alive_s_max=60)
    assert Client(hub, keep_alive=120).connack.server_keep_alive == 60
    assert Client(hub, "b", keep_alive=30).connack.server_keep_alive is None


@pytest.mark.mqtt("MQTT-3.2.2-6")
def test_another_users_session_cannot_be_taken():
    users = PasswordFile()
    for name in ("ann", "bob"):
        users = users.with_user(name, b"secret", Cost(ln=4))
        assert users.verify(name, b"secret")
    for name in ("ann", "bob"):
        assert users.verify(name, b"secret")  # remembered, so that no proof is waited for
    hub = new_hub(access_control=AccessControl(passwords=users))
    ann = Client(hub, "c", username="ann", password=b"secret", session_expiry_interval=10)
    bob = Client(hub, "c", username="bob", password=b"secret", clean_start=False)
    assert bob.connack.reason_code is Answer.NOT_AUTHORIZED
    assert not bob.connack.session_present  # though there is one
    assert not ann.connection.closing


@pytest.mark.mqtt("MQTT-3.1.3-8", "MQTT-4.12.0-1", "MQTT-4.12.0-4")
def test_a_client_with_an_id_too_long_or_an_unknown_method_is_refused():
    hub = new_hub(client_id_letters_max=5)
    long, proving = Client(hub, "x" * 6), Client(hub, "c", authentication_method="SCRAM")
    assert long.connack.reason_code is Answer.CLIENT_ID_NOT_VALID
    assert long.connection.closing
    assert proving.connection.closing
    answer = proving.connack
    assert answer.reason_code is Answer.BAD_AUTHENTICATION_METHOD
    assert answer.reason_str


def test_a_client_that_cannot_take_its_connack_is_let_go():
    hub = new_hub()
    client = Client(hub, "", max_packet_size=20)
    assert client.connection.closing
    assert not hub.sessions


def test_no_keep_alive_at_all_is_allowed_only_where_any_is():
    assert Client(new_hub(), keep_alive=0).connack.server_keep_alive is None
    assert Client(new_hub(keep_alive_s_max=60), keep_alive=0).connack.server_keep_alive == 60


def test_a_client_of_version_3_keeps_its_own_keep_alive_and_gets_plain_packets():
    hub = new_hub(keep_alive_s_max=5)
    connection = new_connection(hub)
    connection.receive(b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x3c\x00\x01c", 0.0)
    assert connection.take_outbox() == b"\x20\x02\x00\x00"
    connection.receive(b"\x82\x06\x00\x01\x00\x01t\x00", 0.0)
    assert connection.take_outbox() == b"\x90\x03\x00\x01\x00"
    Client(hub, "pub").publish("t", b"x", user_properties=[("a", "1")])
    assert connection.take_outbox() == b"\x30\x04\x00\x01tx"
    hub.tick(60.0)
    assert not connection.closing
    hub.tick(90.1)
    assert connection.closing


def test_a_broker_without_a_network_refuses_other_brokers():
    client = Client(new_hub(), user_properties=[(LINK, "1")])
    assert client.connack.reason_code is Answer.NOT_AUTHORIZED
    assert client.connack.reason_str == NO_NETWORK
    assert client.connection.closing
