"""Is a promise given only where it can be kept, by a model that only the control centre can send?"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.admission.admission import FRESH_S, AdmissionControl, worked_out
from betimes.broker.admission.model_packets import MODEL_TOPIC, ModelError, packed_model, unpacked_model
from betimes.broker.core.hub import Hub
from betimes.broker.net.background import promised_subscriptions
from betimes.broker.observe.event_recorder import EventRecorder
from betimes.broker.storage.newest_numbers import NewestNumbers
from betimes.model.distributions import Constant, Exponential
from betimes.model.errors import BetimesError
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
)
from betimes.model.telemetry import Answered
from betimes.scheduling.recorder import Recorder

SECRET = "a secret of the control centre"
QUOTA_EXCEEDED = 0x97


def statistics(learned_at_s: float = 100.0, broker: str = "b1") -> NetworkStatistics:
    """A publisher far away, behind a link that is busy for about half of the time."""
    return NetworkStatistics(
        brokers=(BrokerStatistics(name="far"), BrokerStatistics(name=broker)),
        links=(LinkStatistics(source="far", target=broker, s_per_kb=Exponential(0.05)),),
        publishers=(
            PublisherStatistics(
                name="p",
                broker="far",
                rate_per_s=10.0,
                size_kb=Constant(1.0),
                sample=tuple(
                    ContentSample(topic="news", attributes={"level": float(level)}, deadline_s=1000.0)
                    for level in range(100)
                ),
            ),
        ),
        subscriptions=(),
        learned_at_s=learned_at_s,
        over_s=60.0,
    )


def promising_hub(
    model: NetworkStatistics | None = None,
    wake: Callable[[], None] = lambda: None,
    recorder: EventRecorder | None = None,
    newest: NewestNumbers | None = None,
) -> tuple[Hub, AdmissionControl]:
    newest = newest or NewestNumbers(None, {})
    hub = new_hub(recorder=recorder)
    admission = AdmissionControl(
        hub.name, SECRET, offer=hub.publishing.offer, wake=wake, newest=newest, recorder=recorder
    )
    hub.extend(admission)
    if model is not None:
        assert admission.learn(worked_out(packed_model(model, SECRET)[0]), (), 0.0)
    return hub, admission


def asking(reliability: float, delay: str = "100ms", **more: str) -> dict[str, str]:
    return {"max-delay": delay, "reliability": str(reliability), **more}


def publish_model(client: Client, payload: bytes, signature: str) -> Any:
    (answer,) = client.publish(MODEL_TOPIC, payload, qos=1, user_properties=[("$signature", signature)])
    return answer.reason_code


def test_who_asks_for_less_than_is_predicted_is_admitted_and_told():
    hub, admission = promising_hub(statistics())
    suback = Client(hub, "ann").subscribe("news", properties=asking(0.3))
    assert suback.reason_codes[0].value == 0
    assert suback.reason_str.startswith("news: predicted 0.")
    assert (admission.admitted, admission.refused) == (1, 0)


def test_who_asks_for_more_is_refused_with_the_number_and_nothing_else_is_lost():
    hub, admission = promising_hub(statistics())
    ann = Client(hub, "ann")
    suback = ann.subscribe("news", properties=asking(0.999))
    assert suback.reason_codes[0].value == QUOTA_EXCEEDED
    assert "predicted 0." in suback.reason_str
    assert "of the 0.999 asked for" in suback.reason_str
    assert (admission.admitted, admission.refused) == (0, 1)
    assert ann.subscribe("news", properties={"max-delay": "100ms"}).reason_codes[0].value == 0
    Client(hub, "bob").publish("news")
    assert ann.got() == [("news", b"x")]


def test_without_a_model_everybody_is_admitted_and_told_so():
    hub, admission = promising_hub()
    suback = Client(hub, "ann").subscribe("news", properties=asking(1.0))
    assert suback.reason_codes[0].value == 0
    assert "without a promise: no model" in suback.reason_str
    assert admission.admitted == 0


def test_a_broker_that_the_model_does_not_know_promises_nothing():
    hub, _ = promising_hub(statistics(broker="another"))
    suback = Client(hub, "ann").subscribe("news", properties=asking(1.0))
    assert suback.reason_codes[0].value == 0
    assert "without a promise" in suback.reason_str


def test_an_old_model_still_answers_and_says_how_old_it_is():
    hub, _ = promising_hub(statistics())
    ann = Client(hub, "ann", now_s=FRESH_S + 60.0)
    suback = ann.subscribe("news", properties=asking(0.999))
    assert suback.reason_codes[0].value == QUOTA_EXCEEDED
    assert "by a model that came 16 minutes ago" in suback.reason_str


def test_who_is_promised_something_keeps_it_when_another_comes():
    """Two that want different halves load the link twice as much as one."""
    hub, admission = promising_hub(statistics())
    first = asking(0.85, "200ms", filter="level < 50")
    assert Client(hub, "ann").subscribe("news", properties=first).reason_codes[0].value == 0
    greedy = {"filter": "level >= 50", "max-delay": "10s", "reliability": "0.01"}
    answer = Client(hub, "bob").subscribe("news", properties=greedy)
    assert answer.reason_codes[0].value == QUOTA_EXCEEDED
    promised = (
        "refused: with it, another subscription would no longer get the share promised to arrive on time"
    )
    assert answer.reason_str == f"news: {promised}", "names and shares of others are not bob's business"
    assert [each.session.client_id for each in promised_subscriptions(hub.sessions.values())] == ["ann"]
    hub.sessions["ann"].connection.lost(1.0)  # type: ignore[union-attr]
    assert Client(hub, "bob").subscribe("news", properties=greedy).reason_codes[0].value == 0
    assert admission.refused == 1


def test_an_old_signed_model_is_refused_also_after_a_restart():
    newest = NewestNumbers(None, {})
    old, new = (worked_out(packed_model(statistics(learned_at_s=at_s), SECRET)[0]) for at_s in (100.0, 200.0))
    _, before = promising_hub(newest=newest)
    assert before.learn(new, (), 0.0)
    _, after = promising_hub(newest=newest)
    assert not after.learn(old, (), 0.0)
    assert after.learn(new, (), 0.0), "it has no model yet, and this is the newest"
    assert not after.learn(new, (), 0.0)


def test_asking_again_counts_once():
    hub, admission = promising_hub(statistics())
    ann = Client(hub, "ann")
    answers = [ann.subscribe("news", properties=asking(0.3)).reason_str for _ in range(3)]
    assert len(set(answers)) == 1
    assert ann.subscribe("news", properties=asking(0.999)).reason_codes[0].value == QUOTA_EXCEEDED
    assert len(hub.sessions["ann"].subscriptions) == 1  # what it had stays
    assert [
        each.options.qos.reliability
        for each in promised_subscriptions(hub.sessions.values())
        if each.options is not None
    ] == [0.3]
    assert admission.admitted == 3


@pytest.mark.parametrize("signature", ["", "0" * 64, "é"])
def test_a_model_that_is_not_signed_is_ignored(signature):
    hub, admission = promising_hub()
    payload, _ = packed_model(statistics(), "another secret altogether")
    assert publish_model(Client(hub, "mallory"), payload, signature) == mqtt5.PubAckReasonCode.NOT_AUTHORIZED
    assert admission.take_model() is None


def test_where_there_is_no_control_centre_nobody_can_publish_a_model():
    hub = new_hub()
    payload, signature = packed_model(statistics(), SECRET)
    assert publish_model(Client(hub, "c"), payload, signature) == mqtt5.PubAckReasonCode.NOT_AUTHORIZED
    assert Client(hub, "ann").subscribe("news", properties=asking(1.0)).reason_codes[0].value == 0


def test_a_model_crosses_the_wire_as_it_was():
    payload, _ = packed_model(statistics(), SECRET)
    assert unpacked_model(payload) == statistics()


@pytest.mark.parametrize(
    "payload", [b"", b"nonsense", zlib.compress(b"\xff"), zlib.compress(b"{}")[:-4], zlib.compress(b"[]")]
)
def test_what_is_no_model_is_said_to_be_none(payload):
    with pytest.raises(BetimesError):
        unpacked_model(payload)


def test_a_model_that_would_fill_the_memory_is_not_unpacked(monkeypatch):
    monkeypatch.setattr("betimes.broker.admission.model_packets.MODEL_BYTES_MAX", 1000)
    with pytest.raises(ModelError, match="more than 1000 bytes"):
        unpacked_model(zlib.compress(b"x" * 2000))


def test_a_newer_model_takes_over_with_the_promises_that_were_given():
    hub, admission = promising_hub(statistics())
    Client(hub, "ann").subscribe("news", properties=asking(0.3))
    newer = worked_out(packed_model(statistics(learned_at_s=200.0), SECRET)[0])
    assert admission.learn(newer, promised_subscriptions(hub.sessions.values()), 5.0)
    assert "ann news at b1" in newer.admission
    for learned_at_s in (200.0, 150.0):  # replayed, or late
        old = worked_out(packed_model(statistics(learned_at_s=learned_at_s), SECRET)[0])
        assert not admission.learn(old, promised_subscriptions(hub.sessions.values()), 6.0)


def test_a_promise_is_asked_of_the_model_that_the_subscriber_will_meet():
    """The same wish, where the network is slower."""
    slow = statistics()
    slow = replace(slow, links=(replace(slow.links[0], s_per_kb=Exponential(0.09)),))
    said = []
    for model in (statistics(), slow):
        hub, _ = promising_hub(model)
        text = Client(hub, "ann").subscribe("news", properties=asking(0.01)).reason_str
        said.append(float(text.split("predicted ")[1].split()[0]))
    assert said[0] > said[1] + 0.1


def test_what_was_answered_is_written_down():
    records: list[Any] = []
    hub, _ = promising_hub(statistics(), recorder=EventRecorder("b1", Recorder(records.append)))
    ann = Client(hub, "ann", now_s=3.0)
    ann.subscribe("news", properties=asking(0.3))
    ann.subscribe("news", properties=asking(0.999))
    first, second = (each for each in records if isinstance(each, Answered))
    assert (first.subscriber, first.pattern, first.reliability, first.admitted) == ("ann", "news", 0.3, True)
    assert (second.reliability, second.admitted, second.broker) == (0.999, False, "b1")
    assert second.predicted_share == pytest.approx(first.predicted_share)
    assert "of the 0.999 asked for" in second.reason
