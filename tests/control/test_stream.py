"""Does a control centre that follows telemetry tell brokers what it learned, and raise alarms?"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from contextlib import closing
from pathlib import Path

import mqtt5
import pyarrow.parquet as pq
import pytest
from tests.client.blocking.test_ranges import address_of
from tests.interop.brokers import HOST, running_broker
from tests.pipeline.records import record, small_world, written

import betimes
from betimes.broker.admission.admission import AdmissionControl
from betimes.broker.storage.newest_numbers import NewestNumbers
from betimes.cli.app import run
from betimes.client.addresses import read_address
from betimes.client.blocking.connection import DirectConnection
from betimes.control.rounds import Centre
from betimes.control.stream import alarm_text, read_stream_settings, run_stream
from betimes.model.errors import SettingError
from betimes.model.telemetry import Delivered, Received
from betimes.pipeline.live.alarms import Alarm
from betimes.pipeline.live.tables import WINDOWS
from betimes.pipeline.tables.files import current_tables, read_arrow
from betimes.terminal.exit_codes import MISTAKE
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

SECRET = "a secret of the control centre"
WITHIN_S = 120.0


@pytest.mark.live
@pytest.mark.spark
def test_brokers_are_told_and_an_alarm_is_raised_where_nothing_comes_as_predicted(spark, tmp_path, capsys):
    lost = [each for each in small_world(200) if not isinstance(each, Delivered)]
    written(tmp_path / "telemetry", [*lost, record(Received, transfer_s=-1.0)], label="a")
    (tmp_path / "telemetry" / "_unfinished-b").touch()
    (tmp_path / "secret").write_text(SECRET)
    with running_broker() as broker, closing(DirectConnection(address_of(broker))) as line:
        admission = AdmissionControl(
            "b1", SECRET, offer=broker.hub.publishing.offer, wake=lambda: None, newest=NewestNumbers(None, {})
        )
        broker.hub.extend(admission)
        line.send(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("$betimes/alarm/#")]))
        line.receive()
        places = ["--telemetry", str(tmp_path / "telemetry"), "--tables", str(tmp_path / "tables")]
        secret = ["--control-secret", str(tmp_path / "secret")]
        url = f"mqtt://{HOST}:{broker.port}"
        assert run(["control", url, *places, *secret, "--stream", "--once", "--json"]) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["told"], facts["set_aside"], facts["alarms"]) == (1, 1, 1)
        assert facts["lag_s"] > 0.0
        assert admission.take_model() is not None
        (alarm,) = line.receive()
    assert alarm.topic == "$betimes/alarm/b/s"
    told = json.loads(alarm.payload)
    assert (told["state"], told["measured"]) == ("begins", 0.0)
    assert told["predicted_low"] > 0.9
    (row,) = pq.read_table(tmp_path / "tables" / "alarms").to_pylist()
    assert (row["subscriber"], row["home"], row["measured"]) == ("s", "b", 0.0)


@pytest.mark.live
@pytest.mark.spark
def test_brokers_tell_their_telemetry_and_are_told_what_it_teaches(spark, tmp_path, capsys):
    (port,) = free_ports(1)
    (tmp_path / "secret").write_text(SECRET)
    plan = FleetPlan(
        ports={"a": port},
        links=(),
        settings={"anonymous": True, "control_secret_file": str(tmp_path / "secret")},
        options=("--telemetry", str(tmp_path / "own"), "--telemetry-share", "1"),
    )
    centre = Centre(
        telemetry=tmp_path / "tables" / "stream" / "told",
        is_told=True,
        tables=tmp_path / "tables",
        brokers=[read_address(f"mqtt://{HOST}:{port}")],
        secret=SECRET,
    )
    ending = threading.Event()

    async def talk() -> None:
        async with betimes.connect(f"mqtt://{HOST}:{port}") as client, client.subscribe("news"):
            end_s = time.monotonic() + WITHIN_S
            while not (tmp_path / "tables" / "current").exists() and time.monotonic() < end_s:
                await client.publish("news", b"x", attributes={"level": 1})
                await asyncio.sleep(0.05)
        ending.set()

    with Fleet(plan):
        talking = threading.Thread(target=lambda: asyncio.run(talk()))
        talking.start()
        settings = read_stream_settings("15m", "2m", 0.1)
        run_stream(spark, centre, settings, every_s=1.0, ending=ending, once=False, as_json=True)
        talking.join()
    first, _ = json.JSONDecoder().raw_decode(capsys.readouterr().out)
    assert (first["brokers"], first["told"], first["publishers"], first["set_aside"]) == (1, 1, 1, 0)
    assert first["lag_s"] > 0.0
    assert first["subscriptions"] >= 1
    assert read_arrow(WINDOWS, current_tables(tmp_path / "tables")).num_rows >= 1


def test_an_alarm_reads_well():
    alarm = Alarm(
        state="begins", subscriber="anna", home="b1", measured=0.5, measured_low=0.4, measured_high=0.6,
        predicted_low=0.9, predicted_high=0.95, at_s=0.0,
    )  # fmt: skip
    assert alarm_text(alarm) == (
        "alarm begins: anna at b1 gets 0.500 on time (0.400 to 0.600), predicted 0.900 to 0.950"
    )


@pytest.mark.parametrize(
    ("asked", "named"),
    [(("1s", "1s", 2.0), "--alarm"), (("9d", "1s", 0.1), "--since"), (("1s", "x", 0.1), "--late")],
)
def test_what_a_stream_cannot_do_is_told_by_its_option(asked, named):
    with pytest.raises(SettingError, match=named):
        read_stream_settings(*asked)


def test_a_stream_needs_telemetry(tmp_path: Path, capsys, monkeypatch):
    monkeypatch.setattr("betimes.cli.control.open_spark", pytest.fail)
    (tmp_path / "secret").write_text(SECRET)
    places = ["--telemetry", str(tmp_path / "no"), "--tables", str(tmp_path / "tables")]
    asked = ["control", "mqtt://a", *places, "--control-secret", str(tmp_path / "secret"), "--stream"]
    assert run(asked) == MISTAKE
    assert "there is no such directory" in capsys.readouterr().err
