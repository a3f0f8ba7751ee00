"""Does who goes away at one broker find at another what was published meanwhile?"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

from tests.broker.networks import Net
from tests.broker.replay.test_resume import ids, resume
from tests.broker.talking import Client

from betimes.model.buffer_settings import BufferSettings
from betimes.model.telemetry import Reason

EVERYTHING = BufferSettings(fetch=("#",))


def keeping(*names: str, buffer: BufferSettings = EVERYTHING, **link: Any) -> Net:
    net = Net(*names, buffer=buffer)
    for one, other in pairwise(names):
        net.join(one, other, **link)
    net.run(1.0)
    return net


def test_a_subscriber_resumes_at_another_broker_what_was_published_at_a_third():
    net = keeping("a", "b", "c")
    ben, anna = net.client("b", "ben"), net.client("a", "anna")
    resume(ben, "now")
    net.run(0.1)
    anna.publish("t", b"1")
    net.run(0.1)
    (first,) = ids(ben)
    ben.connection.lost(net.now_s)
    anna.publish("t", b"2")
    anna.publish("u", b"3")
    net.run(0.1)
    ben = net.client("c", "ben")
    suback = resume(ben, first)
    assert ("buffered", "all") in suback.user_properties
    assert [payload for _, payload in ben.got()] == [b"2", b"3"]
    net.run(0.1)
    anna.publish("t", b"4")
    net.run(0.1)
    assert [payload for _, payload in ben.got()] == [b"4"]


def test_a_broker_that_dies_takes_nothing_with_it_that_another_has():
    net = keeping("a", "b")
    ben = net.client("a", "ben")
    resume(ben, "now")
    anna = net.client("a", "anna")
    anna.publish("t", b"1")
    (last,) = ids(ben)
    anna.publish("t", b"2")
    net.run(0.1)
    net.kill("a")
    net.run(0.1)
    ben = net.client("b", "ben")
    assert resume(ben, last).reason_codes[0].value == 0
    assert ben.got() == [("t", b"2")]


def test_a_broker_that_asks_for_nothing_says_that_it_has_only_a_part():
    net = keeping("a", "b", buffer=BufferSettings())
    anna = net.client("a", "anna")
    anna.publish("t", b"1")
    net.run(0.1)
    suback = resume(net.client("b", "ben"), "b:0", "a:1")
    assert ("buffered", "part") in suback.user_properties
    assert "only a part" in suback.reason_str


def test_what_a_buffer_asks_for_does_not_count_as_wanted_or_lost():
    net = keeping("a", "b")
    (puback,) = net.client("a", "anna").publish("t", b"1", qos=1)
    assert puback.reason_code.value == 0x10  # no matching subscribers
    net.run(0.1)
    net.cut("a", "b")
    net.client("a", "anna").publish("t", b"2")
    net.run(30.0)
    assert sum(net.hubs["a"].counters.lost.values()) == 0


def test_what_never_came_over_a_broken_link_is_told_as_a_gap():
    net = keeping("a", "b")
    anna = net.client("a", "anna")
    anna.publish("t", b"1")
    net.run(0.1)
    net.cut("a", "b")
    for number in (2, 3):
        anna.publish("t", str(number).encode())
    net.run(90.0)
    net.join("a", "b")
    net.run(1.0)
    anna.publish("t", b"4")
    net.run(0.1)
    ben = net.client("b", "ben")
    replay = net.hubs["b"].replay
    assert replay is not None
    first = replay.buffer.highest()["a"] - 3
    resume(ben, f"a:{first}")
    gap, last = ben.read()
    told = json.loads(gap.payload)
    assert (told["why"], told["at_most"]) == ("never came", 2)
    assert last.payload == b"4"


def test_a_token_of_a_known_broker_that_is_far_ahead_is_from_the_future():
    net = keeping("a", "b")
    suback = resume(net.client("b", "ben"), "a:9000000000000000")
    assert suback.reason_codes[0].value == 0x83
    assert "from the future" in suback.reason_str


def test_subscribers_traffic_goes_before_what_is_only_kept():
    net = Net("a", "b", buffer=EVERYTHING)
    net.join("a", "b", s_per_kb=0.1)
    net.run(2.0)
    ben: Client = net.client("b", "ben")
    ben.subscribe("wanted", properties={"max-delay": "2s"})
    net.run(1.0)
    anna = net.client("a", "anna")
    for _ in range(100):
        anna.publish("t", b"x" * 1000)  # ten seconds' worth, for nobody
    for number in range(5):
        anna.publish("wanted", bytes([number]) * 1000)
    net.run(3.0)
    assert len(ben.got()) == 5
    assert net.hubs["a"].counters.lost[Reason.EXPIRED] == 0
