"""Does a session stay whole until another broker has it, and is it at one broker whatever is not heard?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.broker.handover.test_incoming import acknowledge, come, leave
from tests.broker.links.test_custody import DurableNet
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub
from betimes.broker.handover import outgoing
from betimes.broker.handover.forwarding import LINGER_S, STRAGGLERS_S, TAKEN_S, Forwarders
from betimes.broker.handover.outgoing import (
    DOUBT_EVERY_S,
    GIVEN_UP_AFTER_S,
    TRANSITIONS,
    OutgoingSessions,
    SessionState,
    TransferSignal,
)
from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    LateTaken,
    MoreParts,
    SessionInquiry,
    SessionPart,
    SessionTaken,
    TransferDoubt,
    TransferOff,
    read_session_message,
)
from betimes.model.subscriptions import DemandVersion

PAGE = Path(__file__).parents[3] / "docs" / "resuming.md"
ASK = SessionInquiry(id=InquiryId("b2", 1), client_id="ben", user=None, packet_bytes_max=100_000)
TAKEN = SessionTaken(id=ASK.id, since=DemandVersion(5, 5))


class Network:
    """The rest of the network, which writes down what it is told."""

    packet_bytes_max = 1_000_000

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.known = DemandVersion()
        self.is_whole = True

    def say_to(self, broker: str, payload: bytes, _now_s: float) -> bool:
        assert broker == "b2"
        self.told.append(read_session_message(payload))
        return True

    def version_of(self, _home: str) -> DemandVersion:
        return self.known

    def absent(self, _now_s: float) -> dict[str, float]:
        return {} if self.is_whole else {"b3": 1.0}

    def unsubscribed(self, subscription: Any) -> None:
        """The demand is withdrawn."""


@pytest.fixture
def leaving():
    return begin(1000)


def begin(messages: int) -> tuple[Hub, OutgoingSessions, Network, Forwarders]:
    hub = new_hub()
    ben = Client(hub, "ben", session_expiry_interval=1000)
    ben.subscribe("t", qos=1)
    ben.connection.lost(0.0)
    anna = Client(hub, "anna")
    for _ in range(messages):
        anna.publish("t", b"x" * 500, qos=1)
    network: Any = Network()
    forwarders = Forwarders(hub, network, None, 0.0)
    departures = OutgoingSessions(hub, network, forwarders, None, 0.0)
    assert departures.give(ASK, hub.sessions["ben"], 0.0)
    return hub, departures, network, forwarders


@pytest.mark.long
def test_parts_go_as_fast_as_they_are_taken(leaving):
    hub, departures, network, _ = leaving
    assert [each.number for each in network.told] == [0, 1, 2, 3]
    while not network.told[-1].is_last:
        assert departures.state_of("ben") is SessionState.LEAVING
        departures.hear(MoreParts(id=ASK.id, parts=len(network.told) - 3), 0.0)
    assert departures.state_of("ben") is SessionState.OFFERED
    assert sum(len(each.rows) for each in network.told) == 1001
    assert all(isinstance(each, SessionPart) for each in network.told)
    assert len(hub.sessions["ben"]) == 1000


def test_who_is_silent_for_too_long_gets_no_more(leaving):
    hub, departures, network, _ = leaving
    departures.tick(GIVEN_UP_AFTER_S - 0.1)
    assert departures.state_of("ben") is SessionState.LEAVING
    departures.tick(GIVEN_UP_AFTER_S)
    assert network.told[-1] == TransferOff(id=ASK.id)
    assert departures.state_of("ben") is SessionState.HERE
    departures.hear(TAKEN, GIVEN_UP_AFTER_S)  # it cannot be: the last part was not sent
    assert len(hub.sessions["ben"]) == 1000


@pytest.mark.parametrize("how", ["off", "called off"])
def test_it_stays_where_it_is_when_the_move_comes_to_nothing(leaving, how):
    hub, departures, network, _ = leaving
    if how == "off":
        departures.hear(TransferOff(id=ASK.id), 0.0)
    else:
        departures.call_off("ben", 0.0)
        assert network.told[-1] == TransferOff(id=ASK.id)
    assert departures.state_of("ben") is SessionState.HERE
    assert (len(hub.sessions["ben"]), departures.count) == (1000, 0)


def test_what_was_offered_is_in_doubt_until_the_other_broker_says():
    hub, departures, network, forwarders = begin(3)
    assert departures.state_of("ben") is SessionState.OFFERED
    departures.tick(DOUBT_EVERY_S)
    departures.tick(2 * DOUBT_EVERY_S)
    assert network.told[1:] == [TransferDoubt(id=ASK.id)] * 2
    departures.hear(TransferOff(id=ASK.id), 0.0)
    assert (departures.state_of("ben"), len(hub.sessions["ben"])) == (SessionState.HERE, 3)
    assert departures.give(ASK, hub.sessions["ben"], 0.0)
    departures.hear(TAKEN, 0.0)
    assert ("ben" in hub.sessions, departures.count, len(forwarders)) == (False, 1, 1)


def test_what_comes_later_follows_until_every_broker_knows_the_new_place():
    hub, departures, network, forwarders = begin(1)
    anna = Client(hub, "anna")
    anna.publish("t", b"between", qos=1)
    departures.hear(TAKEN, 0.0)
    late = network.told[-1]
    assert isinstance(late, LateDeliveries)
    assert b"between" in late.packets
    anna.publish("t", b"after", qos=1)
    forwarders.tick(0.5)
    assert network.told[-1] is late  # one at a time
    forwarders.tick(1.0)
    assert network.told[-1] is not late  # it may be lost
    assert network.told[-1].numbers == late.numbers
    forwarders.confirmed(LateTaken(id=ASK.id, last=late.numbers[-1]), 1.0)
    assert b"after" in network.told[-1].packets
    forwarders.confirmed(LateTaken(id=ASK.id, last=network.told[-1].numbers[-1]), 1.0)
    network.known = DemandVersion(5, 5)
    anna.publish("t", b"goes there by itself", qos=1)
    network.is_whole = False
    let_pass(forwarders, 1.0, 2 * LINGER_S)
    assert len(forwarders) == 1  # some broker may not have heard yet
    network.is_whole = True
    let_pass(forwarders, 2 * LINGER_S, 3 * LINGER_S + STRAGGLERS_S)
    assert (hub.held[0], len(forwarders)) == (0, 0)
    assert sum(hub.counters.lost.values()) == 0
    assert not any(b"by itself" in each.packets for each in network.told if isinstance(each, LateDeliveries))


def let_pass(forwarders: Forwarders, from_s: float, to_s: float) -> None:
    """Let a broker tick every second."""
    for seconds in range(int(to_s - from_s) + 1):
        forwarders.tick(from_s + seconds)


def test_time_in_which_the_broker_was_stopped_does_not_count():
    _, departures, _, forwarders = begin(1)
    departures.hear(TAKEN, 0.0)
    forwarders.tick(1.0)
    forwarders.tick(1.0 + LINGER_S)  # it was stopped: what came meanwhile is not read yet
    assert len(forwarders) == 1
    let_pass(forwarders, 2.0 + LINGER_S, 2.0 + 2 * LINGER_S + STRAGGLERS_S)
    assert len(forwarders) == 0


def test_as_long_as_something_comes_for_a_session_it_is_followed():
    hub, departures, network, forwarders = begin(1)
    anna = Client(hub, "anna")
    departures.hear(TAKEN, 0.0)
    for number in range(4):
        let_pass(forwarders, number * LINGER_S / 2, (number + 1) * LINGER_S / 2 - 1.0)
        anna.publish("t", b"under way for long", qos=1)
        forwarders.tick((number + 1) * LINGER_S / 2 - 0.5)
        late = network.told[-1]
        forwarders.confirmed(LateTaken(id=ASK.id, last=late.numbers[-1]), (number + 1) * LINGER_S / 2 - 0.5)
    assert len(forwarders) == 1
    let_pass(forwarders, 2 * LINGER_S, 3 * LINGER_S + STRAGGLERS_S)
    assert len(forwarders) == 0


def test_an_inquiry_that_was_answered_with_a_session_is_remembered():
    _, departures, _, forwarders = begin(1)
    assert not forwarders.has_given(ASK.id)
    departures.hear(TAKEN, 0.0)
    assert forwarders.has_given(ASK.id)
    forwarders.tick(TAKEN_S + 1.0)
    assert not forwarders.has_given(ASK.id)


def test_a_session_that_ended_meanwhile_is_not_let_go_again():
    hub, departures, _, _ = begin(1)
    departures.ended(hub.sessions["ben"])
    departures.hear(TAKEN, 0.0)
    assert departures.count == 0


@pytest.mark.long
def test_no_more_leave_at_once_than_may(leaving, monkeypatch):
    hub, departures, _, _ = leaving
    monkeypatch.setattr(outgoing, "LEAVING_MAX", 1)
    Client(hub, "eve", session_expiry_interval=1000)
    assert not departures.give(ASK, hub.sessions["eve"], 0.0)
    assert hub.sessions["eve"].connection is not None


def diagram() -> str:
    """Return the table of transitions as a diagram."""
    lines = [f"    {one.value} --> {to.value}: {signal.value}" for (one, signal), to in TRANSITIONS.items()]
    return "\n".join(["stateDiagram-v2", "    [*] --> here", *lines, "    gone --> [*]", ""])


def test_the_page_shows_the_table():
    assert f"```mermaid\n{diagram()}```" in PAGE.read_text(), "put diagram() into docs/resuming.md"


def test_a_client_is_only_served_where_the_session_is_here():
    reached = {SessionState.HERE, *TRANSITIONS.values()}
    assert reached == set(SessionState)
    assert not [pair for pair in TRANSITIONS if pair[0] is SessionState.GONE]
    assert (SessionState.OFFERED, TransferSignal.CALLED_OFF) not in TRANSITIONS  # only the other broker knows


def test_what_came_between_the_parts_of_a_session_is_not_taken_for_sent_after_a_restart(monkeypatch):
    monkeypatch.setattr(outgoing, "PART_BYTES_MAX", 10_000)
    net = DurableNet("a", "b")
    net.join("a", "b", delay_s=0.05)
    net.run(2.0)
    ben = come(net, "a")
    ben.subscribe("news", qos=1)
    leave(net, ben)
    anna = net.client("a", "anna")
    for number in range(1, 61):  # so many that parts are asked for
        anna.publish("news", b"%d %b" % (number, b"x" * 2_000), qos=1, packet_id=number)
    net.run(0.1)
    net.client("b", "ben", clean_start=False, session_expiry_interval=3600)
    number = 61
    while not net.shelves["a"].rows.get("offers"):
        anna.now_s = net.now_s
        anna.publish("news", b"%d late" % number, qos=1, packet_id=number)
        number += 1
        net.run(0.01)
    assert number > 62, "some came while parts were sent"
    net.run(0.07)  # b has the last part, and a does not know it yet
    net.kill("a")
    net.run(0.5)
    net.start("a")
    net.join("a", "b")
    net.run(2.0)
    ben = come(net, "b")
    assert ben.connack.session_present
    got = acknowledge(ben, ben.first)
    for _ in range(100):
        net.run(0.1)
        ben.now_s = net.now_s
        got += acknowledge(ben, ben.read())
    assert sorted({int(each.split()[0]) for each in got}) == list(range(1, number))
