"""Does a reservation of what events take grow when they take more, and is who has it told?"""

from __future__ import annotations

import mqtt5
import pytest
from tests.broker.guarantees.test_guarantees import Six, codes, news

from betimes.model.buffer_settings import BufferSettings

pytestmark = pytest.mark.long

REFRESH_S = 10.0
AND_MORE_S = 5.0


@pytest.fixture
def six():
    return Six()


def advertise(six, name, rate, broker="a"):
    client = six.client(broker, name, user_properties=[("advertise", f"cars = {rate}")])
    six.run(REFRESH_S + AND_MORE_S)
    return client


def states(client):
    return [(each["state"], each.get("bytes_per_s")) for each in news(client)]


def test_another_publisher_at_the_same_broker_is_reserved_for(six):
    alice = six.ask("alice", bandwidth="any", latency="500ms")
    assert codes(alice) == [0]
    advertise(six, "second", "20KB/s")
    assert set(six.promised().values()) == {40_000}
    assert len(six.promised()) == 3
    assert states(alice)[-1] == ("accepted", 40_000)
    alice.ask(mqtt5.UnsubscribePacket(2, ["cars"]))
    six.run(1.0)
    assert six.promised() == {}


def test_what_was_reserved_is_kept_where_more_does_not_fit_and_that_is_told(six):
    alice = six.ask("alice", bandwidth="any")
    second = advertise(six, "second", "50KB/s")
    assert set(six.promised().values()) == {20_000}
    assert states(alice) == [("refused", None)]
    second.connection.lost(six.now_s)
    six.run(REFRESH_S + AND_MORE_S)
    assert states(alice) == [("accepted", 20_000)]
    assert set(six.promised().values()) == {20_000}


def test_who_leaves_while_more_is_asked_for_gives_everything_back(six):
    alice = six.ask("alice", bandwidth="any")
    advertise(six, "second", "50KB/s")
    alice.connection.lost(six.now_s)
    six.run(1.0)
    assert six.promised() == {}
    assert codes(six.ask("bob", bandwidth="54KB/s")) == [0]


def test_who_asked_for_so_much_has_so_much(six):
    alice = six.ask("alice", bandwidth="20KB/s")
    advertise(six, "second", "20KB/s")
    assert set(six.promised().values()) == {20_000}
    assert states(alice) == []


def test_a_publisher_at_another_broker_is_told_of_with_what_is_reserved_for_it(six):
    alice = six.ask("alice", bandwidth="any")
    advertise(six, "second", "15KB/s", broker="b")
    assert states(alice)[-1] == ("accepted", 35_000)


def test_what_breaks_while_more_is_asked_for_is_asked_for_anew_once(six):
    alice = six.ask("alice", bandwidth="any")
    advertise(six, "second", "25KB/s")
    assert set(six.promised().values()) == {45_000}
    middle = next(two for one, two in six.promised() if one == "a")
    news(alice)
    six.kill(middle)
    six.run(REFRESH_S)
    assert states(alice)[-1] == ("accepted", 45_000)
    assert set(six.promised().values()) == {45_000}
    assert len(six.promised()) == 3


def test_who_resumes_is_told_its_numbers_too():
    six = Six(buffer=BufferSettings())
    alice = six.ask("alice", bandwidth="any", **{"resume-after": "now"})
    assert codes(alice) == [0]
    told = dict(alice.suback.user_properties)
    assert told["bandwidth"] == "20KB/s"
    assert {"latency", "outstanding"} <= set(told)
