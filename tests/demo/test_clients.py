"""Do real clients replay departures and count what comes, and say so when a broker goes away?"""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.broker.talking import OPEN_ACCESS, new_hub
from tests.interop.brokers import PLAIN, Broker, running_broker

from betimes.demo.clients import dropped_by_reason, replay, subscribe_properties
from betimes.demo.flights import departures, read_flights
from betimes.demo.scores import flight_scenario
from betimes.model.errors import BetimesError
from betimes.mqtt.subscribe_options import read_options
from betimes.terminal.fleet import free_ports

WITHIN_S = 60.0


def subscriptions():
    """Return the subscribers of the demo, with a bound of a second: so long a replay waits at its end."""
    found = flight_scenario().subscriptions
    return [replace(each, qos=replace(each.qos, delay_s_max=1.0)) for each in found]


def one_broker_for_all(port):
    return dict.fromkeys(flight_scenario().brokers, port)


def run(flights, wanted, ports, advance=lambda _done, _total: None):
    return asyncio.run(asyncio.wait_for(replay(flights, wanted, ports, advance), WITHIN_S))


def test_a_broker_reads_in_a_wish_what_the_scenario_says():
    for each in flight_scenario().subscriptions:
        wish = read_options(subscribe_properties(each))
        assert wish is not None
        assert (wish.filter, wish.qos) == (each.filter, each.qos)


@pytest.mark.live
def test_on_one_idle_broker_everything_arrives_once():
    flights, steps = departures(read_flights(), 1.0), []
    with running_broker() as broker:
        ports = one_broker_for_all(broker.port)
        tally = run(flights, subscriptions(), ports, lambda *step: steps.append(step))
    scores = tally.scores()
    assert tally.published == len(flights) == scores["archive"].wanted
    assert tally.unexpected == 0
    assert all(each.arrived == each.wanted for each in scores.values())
    assert steps[0] == (0, len(flights))
    assert steps[-1] == (len(flights), len(flights))


@pytest.mark.live
def test_a_broker_that_is_not_there_is_told_of():
    with pytest.raises(BetimesError, match="a client lost the connection to its broker"):
        run(departures(read_flights(), 1.0), subscriptions(), one_broker_for_all(free_ports(1)[0]))


@pytest.mark.live
def test_a_broker_that_goes_away_ends_the_replay():
    broker = Broker(new_hub(access_control=OPEN_ACCESS), PLAIN)
    broker.start()

    def leave(done, _total):
        if done == 5:
            broker.stop()

    with pytest.raises(BetimesError, match="a client lost the connection to its broker"):
        run(departures(read_flights(), 5.0), subscriptions(), one_broker_for_all(broker.port), leave)


def test_a_broker_without_metrics_is_named():
    port = free_ports(1)[0]
    with pytest.raises(BetimesError, match=f"127.0.0.1:{port}: cannot read the broker's metrics"):
        dropped_by_reason([port])
