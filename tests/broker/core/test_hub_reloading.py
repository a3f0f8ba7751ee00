"""Does a new gate hold for who is inside already?"""

from __future__ import annotations

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.access.acl import AccessList
from betimes.broker.access.authentication import AccessControl
from betimes.broker.access.passwords import Cost, PasswordFile
from betimes.broker.core.hub import Hub
from betimes.model.telemetry import Reason

COST = Cost(ln=4)
ANN = PasswordFile().with_user("ann", b"secret", COST)
BOTH = ANN.with_user("bob", b"secret", COST)


def access_control(passwords: PasswordFile, *lines: str) -> AccessControl:
    access = AccessList.read("".join(f"{line}\n" for line in lines), "list") if lines else None
    return AccessControl(anonymous=True, passwords=passwords, access=access)


def user(hub: Hub, name: str, **connect) -> Client:
    client = Client(hub, name, username=name, password=b"secret", **connect)
    client.connection.proven(True, 0.0)  # as the driver does
    client.read()
    return client


def test_rights_are_those_of_the_new_list_from_the_next_message_on():
    hub = new_hub(
        access_control=access_control(BOTH, "user ann", "topic readwrite a", "user bob", "topic readwrite a")
    )
    ann, bob = user(hub, "ann"), user(hub, "bob")
    ann.subscribe("a")
    bob.publish("a", b"1")
    assert ann.got() == [("a", b"1")]
    assert hub.change_access_control(access_control(BOTH, "user bob", "topic readwrite a"), 0.0) == 0
    bob.publish("a", b"2")
    assert ann.got() == []
    (answer,) = ann.publish("a", qos=1)
    assert answer.reason_code.value == 0x87
    assert hub.change_access_control(access_control(BOTH), 0.0) == 0
    bob.publish("a", b"3")
    assert ann.got() == [("a", b"3")]


def test_a_user_who_is_known_no_more_is_sent_away_and_others_stay():
    hub = new_hub(access_control=access_control(BOTH))
    ann, bob = user(hub, "ann"), user(hub, "bob", session_expiry_interval=1000)
    nobody = Client(hub, "nobody")
    assert hub.change_access_control(access_control(ANN), 0.0) == 1
    (goodbye,) = bob.read()
    assert goodbye.reason_code is mqtt5.DisconnectReasonCode.NOT_AUTHORIZED
    assert set(hub.sessions) == {"ann", "nobody"}
    for client in (ann, nobody):
        (pong,) = client.ask(mqtt5.PingReqPacket())
        assert isinstance(pong, mqtt5.PingRespPacket)


def test_who_comes_next_meets_the_new_gate():
    hub = new_hub(access_control=access_control(ANN))
    hub.change_access_control(AccessControl(passwords=BOTH), 0.0)
    assert Client(hub, "x").connack.reason_code.value == 0x86
    assert hub.access_control.prove("bob", b"secret")


def leave_a_delayed_will(hub: Hub, name: str) -> None:
    will = mqtt5.Will("a", payload=b"gone", will_delay_interval=10)
    user(hub, name, will=will, session_expiry_interval=1000).connection.lost(0.0)


def test_a_delayed_will_goes_out_under_the_rights_of_the_moment():
    both_may = ("user ann", "topic readwrite a", "user bob", "topic readwrite a")
    hub = new_hub(access_control=access_control(BOTH, *both_may))
    ann = user(hub, "ann")
    ann.subscribe("a")
    leave_a_delayed_will(hub, "bob")
    hub.change_access_control(access_control(BOTH, *both_may[:2]), 1.0)
    hub.tick(11.0)
    assert ann.got() == []
    leave_a_delayed_will(hub, "bob")
    hub.change_access_control(access_control(BOTH, *both_may), 1.0)
    hub.tick(11.0)
    assert ann.got() == [("a", b"gone")]


def test_a_session_whose_user_is_known_no_more_ends_with_its_will():
    hub = new_hub(access_control=access_control(BOTH))
    ann = user(hub, "ann")
    ann.subscribe("a")
    leave_a_delayed_will(hub, "bob")
    assert hub.change_access_control(access_control(ANN), 1.0) == 0
    assert set(hub.sessions) == {"ann"}
    hub.tick(11.0)
    assert ann.got() == []
    assert hub.counters.lost[Reason.REFUSED] == 1
