"""Is a session in one place, and every broker's clock alive, when a client reconnects during a handover?"""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.handover.test_incoming import chain, come, settle, waiting
from tests.broker.networks import Net

from betimes.broker.handover.outgoing import SessionState


def with_departure_under_way(delay_s: float) -> Net:
    """Return a network in which the session of ben is on its way from a to b, and a has not let it go."""
    net = chain("a", "b", delay_s=delay_s)
    ben = come(net, "a")
    ben.subscribe("t", qos=1)
    ben.connection.lost(net.now_s)
    net.client("a", "anna").publish("t", b"one", qos=1)
    waiting(net, "b")
    handovers = net.brokers["a"].handovers
    assert handovers is not None
    while handovers.departures.state_of("ben") is SessionState.HERE:
        net.run(0.01)
    return net


@pytest.mark.parametrize("delay_s", [0.01, 1.0])
@pytest.mark.parametrize(
    "connect",
    [
        {"clean_start": False, "keep_alive": 1},
        {"clean_start": False, "keep_alive": 1, "session_expiry_interval": 3600},
        {"clean_start": True, "keep_alive": 1},
        {"clean_start": True, "keep_alive": 1, "session_expiry_interval": 3600},
    ],
)
def test_a_client_that_comes_back_meanwhile_and_falls_silent_stops_no_clock(connect, delay_s):
    net = with_departure_under_way(delay_s)
    again = net.client("a", "ben", **connect)
    settle(net, again, 20.0)
    net.run(20.0)
    found = net.hubs["a"].sessions.get("ben")
    assert found is None or found.connection is None
    assert (found is None) == ("session_expiry_interval" not in connect)


def test_a_client_that_comes_back_meanwhile_gets_its_session_and_what_waited_in_it():
    net = with_departure_under_way(0.05)
    again = net.client("a", "ben", clean_start=False)
    got: list[Any] = []
    for _ in range(100):
        settle(net, again, 0.05)
        got += [each.payload for each in [*again.first, *again.read()] if hasattr(each, "payload")]
        again.first = []
    assert again.connack is not None
    assert again.connack.session_present
    assert got == [b"one"]
    assert "ben" not in net.hubs["b"].sessions
