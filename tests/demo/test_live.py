"""Does the live demo measure what it says, and leave no broker behind, however it ends?"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from betimes.cli.app import command_names
from betimes.demo.cast import CastFacts, GuaranteedPassenger, RefusedRequest, Traveller
from betimes.demo.flights import departures, read_flights
from betimes.demo.live import (
    NEXT,
    LiveRun,
    cast_facts,
    print_live_demo,
    share_text,
    subscriber_table,
    told_to_end_as_interrupted,
)
from betimes.demo.scores import STRATEGIES, DemoOutcome, Score, flight_scenario
from betimes.terminal.terminal import typed

BETIMES = str(Path(sys.executable).with_name("betimes"))
WITHIN_S = 120.0
WHOLE_S = 600.0  # Spark starts in it, on a machine that does much else
OFF_MAX = 0.05
BROKERS = flight_scenario().brokers
CAST = CastFacts(
    traveller=Traveller(published=10, got=9, replayed=3, twice=0, out_of_order=0, gaps=1, away_s=2.5),
    guaranteed=GuaranteedPassenger(answer="4KB/s reserved", published=8, got=8, on_time=7, within_s=0.5),
    asked=RefusedRequest(asked_share=0.99, refused=True, answer="predicted 0.1 of the 0.99 asked for"),
)


def finished(scenario):
    nothing = Score(wanted=0, arrived=0, on_time=0, earning=0.0, on_offer=0.0)
    some = Score(wanted=8, arrived=4, on_time=3, earning=30.0, on_offer=80.0)
    scores = {each.id: nothing for each in scenario.subscriptions} | {"slot-control": some}
    outcomes = tuple(
        DemoOutcome(
            strategy=strategy,
            published=10,
            unexpected=0,
            behind_s_max=0.004,
            scores=scores,
            dropped={"expired": 4},
        )
        for strategy in STRATEGIES
    )
    return LiveRun(
        scenario=scenario,
        seconds=3.0,
        payload_bytes_mean=2000.4,
        outcomes=outcomes,
        predicted={"slot-control": 0.5, "archive": 0.25},
        cast=CAST,
        page=Path("out/demo/report.html"),
        took_s=60.0,
    )


def test_the_demo_ends_with_both_strategies_each_subscriber_and_three_next_steps(capsys):
    scenario = flight_scenario()
    print_live_demo(finished(scenario))
    said = capsys.readouterr().out
    names = [each.id for each in scenario.subscriptions]
    played = (
        "9 of 10 notices, 3 of them",
        "7 of 8 alerts",
        "predicted 0.1 of the 0.99",
        "out/demo/report.html",
    )
    for text in (*STRATEGIES, *names, "37.5%", "50.0%", "4 expired", *played, *map(typed, NEXT)):
        assert text in said or text in " ".join(said.split())
    assert len(NEXT) == 3


def test_what_to_try_next_can_be_tried():
    assert {command.split()[1] for command in NEXT} <= set(command_names())


def test_a_subscriber_that_wanted_nothing_has_no_share():
    rows = {row[0]: row for row in subscriber_table(finished(flight_scenario()))}
    assert rows["archive"][-3:] == ["-", "-", "25.0%"]
    assert rows["slot-control"][-3:] == ["37.5%", "37.5%", "50.0%"]
    assert (share_text(3, 8), share_text(0, 0)) == ("37.5%", "-")


def test_json_has_the_same_facts():
    told = json.loads(json.dumps(finished(flight_scenario()).as_json()))
    assert [each["strategy"] for each in told["strategies"]] == list(STRATEGIES)
    assert told["payload_bytes_mean"] == 2000
    assert told["strategies"][0]["subscribers"]["slot-control"]["on_time_share"] == 0.375
    assert told["strategies"][0]["subscribers"]["archive"]["on_time_share"] is None
    assert told["prediction_off_mean"] == 0.125, "who wanted nothing does not count"
    assert (told["traveller"]["replayed"], told["guaranteed"]["on_time"], told["refused"]["refused"]) == (
        3,
        7,
        True,
    )


def test_one_who_was_not_refused_is_not_called_so():
    cast = replace(CAST, asked=RefusedRequest(asked_share=0.99, refused=False, answer="predicted 1"))
    assert cast_facts(cast)["not refused"] == "predicted 1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_ignored_signal_stays_ignored(number):
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with told_to_end_as_interrupted():
            signal.raise_signal(number)
            assert signal.getsignal(number) == signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_told_to_end_is_an_interrupt(number):
    before = signal.signal(number, signal.SIG_DFL)  # nohup may have had it ignored
    try:
        with pytest.raises(KeyboardInterrupt), told_to_end_as_interrupted():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)


def brokers_of(process_id):
    """Return the brokers that a process has started and that still run: their ids, by their numbers."""
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "pid=,ppid=,stat=,args="], capture_output=True, text=True, check=True
    )
    found = {}
    for line in listed.stdout.splitlines():
        own, parent, state, command = line.split(None, 3)
        number = re.search(r" broker .*/([0-9]+)\.toml", command)
        if int(parent) == process_id and number and not state.startswith("Z"):
            found[int(number[1])] = int(own)
    return found


def is_running(process_id):
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def demo_at(stage):
    """Start a demo; give it, with its brokers, when it says that it has come so far."""
    with tempfile.TemporaryDirectory() as folder:
        yield from _demo_in(folder, stage)


def _demo_in(folder, stage):
    process = subprocess.Popen(
        [BETIMES, "demo", "--seconds", "4", "--out", folder],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if stage in line:
                break
        assert stage in said[-1], f"it ended before it came so far: {''.join(said)}"
        end_s = time.monotonic() + WITHIN_S
        while len(brokers_of(process.pid)) < len(BROKERS) and time.monotonic() < end_s:
            time.sleep(0.02)
        yield process, brokers_of(process.pid)
    finally:
        process.kill()


def whole_run(folder, seconds):
    command = [BETIMES, "demo", "--seconds", f"{seconds:g}", "--json", "--out", str(folder)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WHOLE_S, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.live
@pytest.mark.spark
def test_the_facts_of_a_whole_run_add_up(tmp_path):
    seconds = 10.0
    told = whole_run(tmp_path, seconds)
    if told["prediction_off_mean"] > OFF_MAX:  # the machine was busy with other things in one part of it
        told = whole_run(tmp_path, seconds)
    published = len(departures(read_flights(), seconds))
    fifo, ours = told["strategies"]
    for each in (fifo, ours):
        subscribers = each["subscribers"].values()
        assert each["published"] == published
        assert each["unexpected"] == 0
        assert 0 < each["on_time"] <= each["arrived"] <= each["wanted"]
        assert each["subscribers"]["archive"]["wanted"] == published
        for fact in ("wanted", "arrived", "on_time", "earning", "on_offer"):
            assert each[fact] == sum(subscriber[fact] for subscriber in subscribers)
        # Nothing is lost silently: what did not arrive was dropped by a broker, with its reason.
        assert each["arrived"] + sum(each["dropped"].values()) == each["wanted"]
    assert fifo["wanted"] == ours["wanted"]
    assert 2.0 * fifo["earning"] <= ours["earning"]
    assert told["prediction_off_mean"] <= OFF_MAX
    assert set(told["predicted"]) == set(ours["subscribers"])
    traveller, guaranteed = told["traveller"], told["guaranteed"]
    assert traveller["got"] == traveller["published"]
    assert traveller["replayed"] > 0
    assert (traveller["twice"], traveller["out_of_order"], traveller["gaps"]) == (0, 0, 0)
    assert guaranteed["got"] == guaranteed["published"] > 0
    assert guaranteed["on_time"] >= 0.9 * guaranteed["published"]
    assert told["refused"]["refused"]
    assert "of the 0.99 asked for on time" in told["refused"]["answer"]
    page = Path(told["page"]).read_text()
    assert page.startswith("<!doctype html>")
    assert "slot-control at airlines" in page


@pytest.mark.live
@pytest.mark.parametrize(
    ("number", "stage"),
    [(signal.SIGINT, "fifo: starting"), (signal.SIGINT, "fifo: departures"), (signal.SIGTERM, "departures")],
)
def test_no_broker_is_left_when_it_is_interrupted(number, stage):
    with demo_at(stage) as (process, brokers):
        process.send_signal(number)
        process.communicate(timeout=WITHIN_S)
    assert process.returncode == 130
    assert len(brokers) == len(BROKERS)
    assert not [each for each in brokers.values() if is_running(each)]


@pytest.mark.live
@pytest.mark.parametrize(
    ("victim", "problem"),
    [
        ("jfk", "a client lost the connection to its broker"),
        ("hub", "the replay is not valid: hub ended with code -9"),
    ],
)
def test_a_broker_that_dies_ends_the_demo_and_none_is_left(victim, problem):
    with demo_at("fifo: departures") as (process, brokers):
        time.sleep(2.0)  # all clients have found theirs
        os.kill(brokers[BROKERS.index(victim)], signal.SIGKILL)
        _, said = process.communicate(timeout=WITHIN_S)
    assert process.returncode == 2
    assert problem in said
    assert not [each for each in brokers.values() if is_running(each)]
