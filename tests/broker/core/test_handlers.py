"""Is a DISCONNECT or PING answered as MQTT 5 has it, and what a client may not send refused?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.talking import Client, goodbye, new_hub

from betimes.mqtt.reason_codes import GRANTED

Gone, Subscribed = mqtt5.DisconnectReasonCode, mqtt5.SubAckReasonCode
Acknowledged = mqtt5.PubAckReasonCode


def test_a_disconnect_may_change_how_long_the_session_lives():
    hub = new_hub(session_expiry_s_max=50.0)
    Client(hub, "ends", session_expiry_interval=10).send(mqtt5.DisconnectPacket(session_expiry_interval=0))
    Client(hub, "lives", session_expiry_interval=10).send(mqtt5.DisconnectPacket(session_expiry_interval=900))
    assert set(hub.sessions) == {"lives"}
    hub.tick(49.9)
    assert hub.sessions
    hub.tick(50.0)  # which is the most there is
    assert not hub.sessions


def test_a_session_that_was_to_end_cannot_be_prolonged_by_a_disconnect():
    client = Client(new_hub())
    answer = client.ask(mqtt5.DisconnectPacket(session_expiry_interval=10))
    assert goodbye(answer) is Gone.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "packet",
    [
        mqtt5.ConnectPacket("c"),
        mqtt5.PingRespPacket(),
        mqtt5.SubAckPacket(1, [GRANTED[0]]),
        mqtt5.AuthPacket(authentication_method="x"),
    ],
)
def test_what_a_client_may_not_send_ends_the_connection(packet):
    assert goodbye(Client(new_hub()).ask(packet)) is Gone.PROTOCOL_ERROR


def test_a_ping_is_answered():
    assert isinstance(Client(new_hub()).ask(mqtt5.PingReqPacket())[0], mqtt5.PingRespPacket)
