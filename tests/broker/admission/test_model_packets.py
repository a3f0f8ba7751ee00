"""Do clients hear alarms of the control centre, and of nobody else?"""

from __future__ import annotations

import json

import mqtt5
from tests.broker.talking import Client, new_hub

from betimes.broker.admission.admission import AdmissionControl
from betimes.broker.admission.model_packets import alarm_topic, signed_alarm
from betimes.broker.storage.newest_numbers import NewestNumbers

SECRET = "between us"
TOPIC = alarm_topic("b1", "anna")


def tell(control: Client, number: int, *, secret: str = SECRET, topic: str = TOPIC, said: str = TOPIC) -> int:
    payload, signature = signed_alarm(said, {"state": "begins"}, number, secret)
    (answer,) = control.publish(topic, payload, qos=1, user_properties=[("$signature", signature)])
    return int(answer.reason_code.value)


def listening() -> tuple[Client, Client]:
    hub = new_hub()
    hub.extend(
        AdmissionControl(
            "b1", SECRET, offer=hub.publishing.offer, wake=lambda: None, newest=NewestNumbers(None, {})
        )
    )
    ben = Client(hub, "ben")
    ben.subscribe("$betimes/alarm/#")
    ben.subscribe("#")
    return Client(hub, "control"), ben


def test_who_listens_hears_an_alarm_without_its_signature():
    control, ben = listening()
    assert tell(control, 7) == 0
    (packet,) = ben.read()
    assert packet.topic == "$betimes/alarm/b1/anna"
    assert json.loads(packet.payload) == {"state": "begins", "number": 7}
    assert packet.user_properties == []


def test_what_is_not_signed_so_or_is_old_is_not_told():
    control, ben = listening()
    assert tell(control, 7, secret="another") == 0x87
    assert tell(control, 7, topic=alarm_topic("b1", "ben")) == 0x87
    assert tell(control, 7, topic="$betimes/other", said="$betimes/other") == 0x87
    assert tell(control, 7) == 0
    assert tell(control, 7) == 0x87
    assert tell(control, 6) == 0x87
    assert tell(control, 8) == 0
    assert len(ben.got()) == 2


def test_without_a_control_centre_nobody_can_raise_an_alarm():
    hub = new_hub()
    assert tell(Client(hub, "control"), 7) == 0x87


def test_an_alarm_is_not_too_long():
    control, _ = listening()
    payload, signature = signed_alarm(TOPIC, {"text": "x" * 20_000}, 1, SECRET)
    (answer,) = control.publish(TOPIC, payload, qos=1, user_properties=[("$signature", signature)])
    assert isinstance(answer, mqtt5.PubAckPacket)
    assert answer.reason_code.value == 0x87
