"""Does Prometheus read the numbers that are told below $SYS?"""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.broker.guarantees.test_guarantees import Six
from tests.broker.handover.test_incoming import chain, come
from tests.broker.replay.test_resume import publishing, resume
from tests.broker.talking import Client, new_hub

from betimes import __version__
from betimes.broker.observe.prometheus import exposition
from betimes.broker.observe.statistics import ObservedParts, gathered
from betimes.broker.observe.sys_topics import texts
from betimes.model.buffer_settings import BufferSettings, PartitionTerms
from betimes.model.network_settings import LinkTerms
from betimes.model.telemetry import Reason


def read(text: str) -> dict[str, float]:
    """Return the samples of an exposition, by name and, where there is one, reason."""
    return {
        " ".join((sample.name, *sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_numbers_are_those_of_the_system_topics():
    hub = new_hub()
    client, away = Client(hub, "c"), Client(hub, "away", session_expiry_interval=100)
    away.subscribe("a", qos=1)
    away.connection.lost(0.0)
    client.subscribe("a")
    client.publish("a", b"x", qos=1, retain=True)
    client.publish("$no")
    found = gathered(ObservedParts(hub=hub), 7.5)
    samples, said = read(exposition(found, 0.125)), texts(found)
    for name, topic in {
        "connections": "clients/connected",
        "sessions": "clients/total",
        "subscriptions": "subscriptions/count",
        "retained_messages": "retained messages/count",
        "publications_received_total": "publish/messages/received",
        "publications_sent_total": "publish/messages/sent",
        "packets_received_total": "messages/received",
        "packets_sent_total": "messages/sent",
        "bytes_received_total": "bytes/received",
        "bytes_sent_total": "bytes/sent",
    }.items():
        assert samples[f"betimes_{name}"] == float(said[topic]) > 0, name
    lost = {reason: samples[f"betimes_lost_total {reason.value}"] for reason in Reason}
    assert lost == {reason: float(reason is Reason.REFUSED) for reason in Reason}
    assert sum(lost.values()) == float(said["publish/messages/dropped"])
    assert samples["betimes_queue_bytes"] == hub.sessions["away"].queue_bytes > 0
    assert (samples["betimes_uptime_seconds"], samples["betimes_event_loop_lag_seconds"]) == (7.5, 0.125)
    assert samples[f"betimes_build_info {__version__}"] == 1.0
    assert samples[f"betimes_broker_info {hub.name}"] == 1.0


def test_what_is_kept_for_who_comes_back_is_told():
    terms = PartitionTerms(messages_max=4, overwrite="random")
    hub, _ = publishing(10, BufferSettings(partitions=(terms,)))
    resume(Client(hub, "ben"), "b1:0")
    resume(Client(hub, "new"), "now")
    samples = read(exposition(gathered(ObservedParts(hub=hub), 0.0), 0.0))
    names = ("buffer_messages", "buffer_overwritten_total", "resumed_subscriptions_total")
    assert [samples[f"betimes_{name}"] for name in names] == [4.0, 6.0, 1.0]
    assert samples["betimes_buffer_bytes"] > 0
    assert samples["betimes_replayed_messages_total"] == 4.0
    assert samples["betimes_gaps_told_total"] >= 1.0


def test_a_broker_that_keeps_nothing_tells_of_no_buffer():
    assert "betimes_buffer_messages" not in read(exposition(gathered(ObservedParts(hub=new_hub()), 0.0), 0.0))


def test_sessions_that_moved_are_counted_in_a_network():
    net = chain("a", "b")
    come(net, "a")
    come(net, "b")
    for name, counts in (("a", (0.0, 1.0)), ("b", (1.0, 0.0))):
        samples = read(exposition(gathered(net.brokers[name].observed, 0.0), 0.0))
        moved = [samples[f"betimes_sessions_{which}_over_total"] for which in ("taken", "handed")]
        assert tuple(moved) == counts
    assert "betimes_sessions_taken_over_total" not in read(
        exposition(gathered(ObservedParts(hub=new_hub()), 0.0), 0.0)
    )


def test_what_is_promised_and_used_on_links_is_told():
    six = Six()
    six.ask("alice", bandwidth="20KB/s")
    six.ask("bob", bandwidth="90KB/s")
    for _ in range(10):
        six.publisher.publish("cars", b"x" * 1000)
    six.run(1.0)
    onward = next(two for one, two in six.promised() if one == "a")
    at_a = read(exposition(gathered(six.brokers["a"].observed, six.now_s), 0.0))
    assert at_a[f"betimes_link_promised_bytes_per_second {onward}"] == 20_000
    assert 10_000 < at_a[f"betimes_link_reserved_bytes_total {onward}"] < 12_000
    at_f = read(exposition(gathered(six.brokers["f"].observed, six.now_s), 0.0))
    assert (at_f["betimes_guarantees_given_total"], at_f["betimes_guarantees_refused_total"]) == (1, 1)


def test_what_subscribers_pay_is_earned_when_it_is_sent_and_not_again():
    hub = new_hub()
    rich, plain = Client(hub, "rich", session_expiry_interval=100), Client(hub, "plain")
    publisher = Client(hub, "publisher")
    rich.subscribe("a", qos=1, properties={"price": "3.5"})
    plain.subscribe("a")
    publisher.publish("a", b"x", qos=1)
    assert read(exposition(gathered(ObservedParts(hub=hub), 1.0), 0.0))["betimes_earned_total"] == 4.5
    rich.connection.lost(1.0)  # it has not acknowledged
    Client(hub, "rich", clean_start=False, session_expiry_interval=100)
    found = gathered(ObservedParts(hub=hub), 2.0)
    assert found.counters.sent == 3
    assert found.earned == 4.5
    publisher.publish("a", b"y", qos=0)
    assert gathered(ObservedParts(hub=hub), 3.0).earned == 9.0


def test_what_links_carried_is_told_for_each():
    net = chain("x", "y", "z")
    net.client("z", "s").subscribe("a")
    net.run(1.0)
    for _ in range(3):
        net.client("x", "p").publish("a", b"x" * 1000)
    net.run(2.0)
    at_x, at_y, at_z = (read(exposition(gathered(net.brokers[name].observed, 0.0), 0.0)) for name in "xyz")
    assert at_x["betimes_link_sent_messages_total y"] == 3.0
    assert at_y["betimes_link_sent_messages_total z"] == 3.0
    assert at_y["betimes_link_sent_bytes_total z"] == at_x["betimes_link_sent_bytes_total y"] > 3000.0
    assert "betimes_link_sent_messages_total x" not in at_y
    assert not any(name.startswith("betimes_link_sent") for name in at_z)


def test_every_link_says_whether_it_is_up_and_when_its_neighbour_was_heard():
    net = chain("a", "b", delay_s=0.05)
    net.start("c", links=(LinkTerms(to="a", host="x"),))
    samples = read(exposition(gathered(net.brokers["a"].observed, net.now_s), 0.0))
    assert samples["betimes_link_up b"] == 1.0
    assert 0.0 <= samples["betimes_link_heard_seconds b"] <= 1.0
    assert samples["betimes_link_round_trip_seconds b"] == pytest.approx(0.1, abs=0.01)
    samples = read(exposition(gathered(net.brokers["c"].observed, net.now_s), 0.0))
    assert samples["betimes_link_up a"] == 0.0
    assert "betimes_link_heard_seconds a" not in samples


def test_what_is_denied_is_counted_by_kind():
    hub = new_hub()
    Client(hub, "c").publish("$no")
    samples = read(exposition(gathered(ObservedParts(hub=hub), 0.0), 0.0))
    assert (samples["betimes_denied_total publish"], samples["betimes_denied_total login"]) == (1.0, 0.0)
