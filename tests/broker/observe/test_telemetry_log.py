"""Does what a live broker writes down end up in files, whole and bounded?"""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.talking import Client, new_hub

from betimes.broker.net import background
from betimes.broker.observe import telemetry_log as module
from betimes.broker.observe.telemetry_log import TelemetryLog
from betimes.model.server_settings import TelemetrySettings
from betimes.telemetry.files import is_unfinished, part_files, read_table


def started(directory, **telemetry):
    settings = TelemetrySettings(directory=str(directory), **telemetry)
    logbook = TelemetryLog("b1", settings, clock_ahead_s=0.0)
    hub = new_hub(recorder=logbook.recorder)
    return hub, logbook


def publish(hub, count):
    bob = Client(hub, "bob")
    for _ in range(count):
        bob.publish("news")


def test_a_share_of_the_events_ends_up_in_files(tmp_path):
    hub, logbook = started(tmp_path, share=0.1)
    publish(hub, 100)
    assert is_unfinished(tmp_path)
    logbook.close()
    assert not is_unfinished(tmp_path)
    assert read_table(tmp_path, "published")["share"].to_pylist() == [0.1] * 10


def test_parts_are_written_after_a_while_and_a_restart_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(background, "LOOK_EVERY_S", 0.01)

    async def test():
        hub, logbook = started(tmp_path, share=1.0, every_s=0.05)
        keeping = asyncio.create_task(background.keep_telemetry(logbook, hub))
        publish(hub, 10)
        while not part_files(tmp_path / "published"):
            await asyncio.sleep(0.01)
        publish(hub, 5)
        keeping.cancel()
        logbook.close()

    asyncio.run(asyncio.wait_for(test(), 30.0))
    assert read_table(tmp_path, "published").num_rows == 15
    hub, logbook = started(tmp_path, share=1.0)
    publish(hub, 1)
    logbook.close()
    assert read_table(tmp_path, "published").num_rows == 16


def test_what_cannot_be_held_is_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "ROWS_HELD_MAX", 10)
    hub, logbook = started(tmp_path, share=1.0)
    publish(hub, 15)
    assert logbook.left_out == 5
    logbook.close()
    assert read_table(tmp_path, "published").num_rows == 10


def test_a_full_disk_loses_telemetry_and_nothing_else(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(background, "LOOK_EVERY_S", 0.01)

    async def test():
        hub, logbook = started(tmp_path / "t", share=1.0, every_s=0.02)
        keeping = asyncio.create_task(background.keep_telemetry(logbook, hub))
        for path in sorted((tmp_path / "t").iterdir()):
            if path.is_dir():
                path.rmdir()
        publish(hub, 3)
        while "telemetry is lost" not in caplog.text:
            await asyncio.sleep(0.01)
        assert not keeping.done()
        keeping.cancel()
        logbook.close()

    asyncio.run(asyncio.wait_for(test(), 30.0))


@pytest.mark.parametrize("share", [1.0, 0.5, 0.3])
def test_shares_are_whole_parts(tmp_path, share):
    settings = TelemetrySettings(directory=str(tmp_path), share=share)
    logbook = TelemetryLog("b1", settings, clock_ahead_s=0.0)
    logbook.close()
