"""Does who listens hear what a broker writes down, and is nothing gathered where nobody does?"""

from __future__ import annotations

import asyncio

import mqtt5
import pytest
from tests.broker.talking import Client, new_hub
from tests.pipeline.records import record

from betimes.broker.net import background
from betimes.broker.net.background import keep_telemetry
from betimes.broker.observe import telemetry_log
from betimes.broker.observe import telemetry_log as module
from betimes.broker.observe.telemetry_log import TelemetryTopics
from betimes.model.server_settings import TelemetrySettings
from betimes.model.telemetry import Published, Sent
from betimes.telemetry.files import read_table
from betimes.telemetry.messages import read_telemetry, read_topic


def heard(client):
    """Return who told how many records of which kind."""
    return [
        (*read_topic(topic), read_telemetry(topic, bytes(payload)).num_rows)
        for topic, payload in client.got()
    ]


def test_nothing_is_gathered_until_somebody_listens():
    hub = new_hub()
    topics = TelemetryTopics(hub)
    topics.take(record(Published))
    assert not topics.tick(1.0)
    anna = Client(hub, "anna")
    anna.subscribe("$betimes/telemetry/#")
    assert topics.tick(2.0)  # she has begun
    assert not topics.tick(3.0)
    for number in range(3):
        topics.take(record(Published, number=number))
    topics.take(record(Sent))
    topics.tick(4.0)
    assert heard(anna) == [(hub.name, "published", 3), (hub.name, "sent", 1)]
    anna.ask(mqtt5.UnsubscribePacket(2, ["$betimes/telemetry/#"]))
    topics.tick(5.0)
    topics.take(record(Published))
    topics.tick(6.0)
    assert heard(anna) == []


def test_many_records_are_several_messages_and_too_many_are_left_out(monkeypatch):
    monkeypatch.setattr(module, "RECORDS_PER_MESSAGE", 4)
    monkeypatch.setattr(module, "RECORDS_HELD_MAX", 10)
    hub = new_hub()
    topics = TelemetryTopics(hub)
    anna = Client(hub, "anna")
    anna.subscribe("$betimes/telemetry/+/published")
    topics.tick(1.0)
    for number in range(12):
        topics.take(record(Published, number=number))
    topics.tick(2.0)
    assert [rows for _, _, rows in heard(anna)] == [4, 4, 2]
    assert topics.left_out == 2


def test_what_is_published_at_a_broker_is_told_beside_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr(background, "LOOK_EVERY_S", 0.01)
    settings = TelemetrySettings(directory=str(tmp_path), share=1.0)
    logbook = telemetry_log.TelemetryLog("b1", settings, clock_ahead_s=0.0)
    hub = new_hub(recorder=logbook.recorder)
    anna, bob = Client(hub, "anna"), Client(hub, "bob")
    anna.subscribe("$betimes/telemetry/#")

    async def test():
        keeping = asyncio.create_task(keep_telemetry(logbook, hub))
        kinds = set[str]()
        while not kinds >= {"published", "subscribed"}:
            bob.publish("news")
            await asyncio.sleep(0.02)
            kinds |= {kind for _, kind, _ in heard(anna)}
        await asyncio.sleep(0.05)
        heard(anna)
        await asyncio.sleep(0.05)
        assert heard(anna) == []  # telling is nothing to tell of
        keeping.cancel()

    asyncio.run(asyncio.wait_for(test(), 30.0))
    logbook.close()
    assert read_table(tmp_path, "published").num_rows == hub.counters.received


@pytest.mark.parametrize("pattern", ["#", "+/telemetry/#"])
def test_wildcards_do_not_reach_it(pattern):
    hub = new_hub()
    Client(hub, "anna").subscribe(pattern)
    assert not TelemetryTopics(hub).tick(1.0)
