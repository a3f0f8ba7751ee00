"""Where several publish one topic, is it reserved of all of them or of none, and is what is told true?

a and f are joined by two ways, over b and c, and over d and e; links carry 60 KB/s each way, of which 54 may
be promised. Cars are published at a and at c.
"""

from __future__ import annotations

import re

import pytest
from tests.broker.guarantees.test_guarantees import QUOTA_EXCEEDED, Six, codes, news

from betimes.broker.links.reservations import ANSWER_S_MAX

pytestmark = pytest.mark.long


@pytest.fixture
def six():
    six = Six()
    six.client("c", "other", user_properties=[("advertise", "cars = 30KB/s")])
    six.run(0.5)
    return six


def would_fit(client):
    (found,) = re.findall(r"([0-9.]+KB/s) would fit", client.suback.reason_str)
    return found


def test_what_is_reserved_is_told_of_all_publishers_together(six):
    alice = six.ask("alice", bandwidth="any")
    assert re.fullmatch(
        r"cars: 50KB/s reserved, of 2 publishers together, [0-9.]+ms away", alice.suback.reason_str
    )
    told = dict(alice.suback.user_properties)
    assert told["bandwidth"] == "50KB/s"
    again = six.ask("bob", bandwidth="any", latency=told["latency"])
    assert codes(again) == [0]


def test_what_would_fit_can_be_had_and_nobody_was_moved_for_what_was_refused(six):
    alice = six.ask("alice", bandwidth="any")
    before = six.promised()
    refused = six.ask("bob", bandwidth="80KB/s", wait_s=1.0)
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert (six.promised(), news(alice)) == (before, [])
    assert codes(six.ask("carol", bandwidth=would_fit(refused))) == [0]


def test_what_would_fit_for_who_is_alone_can_be_had(six):
    refused = six.ask("bob", bandwidth="80KB/s", wait_s=1.0)
    assert six.promised() == {}
    assert codes(six.ask("carol", bandwidth=would_fit(refused))) == [0]


def test_the_latency_that_is_told_can_be_had_of_both(six):
    refused = six.ask("alice", bandwidth="any", latency="1ms", wait_s=1.0)
    told = dict(refused.suback.user_properties)
    assert codes(six.ask("bob", bandwidth="any", latency=told["latency"])) == [0]


def test_a_refusal_while_a_flow_is_moved_is_not_definite_and_may_be_had_after():
    six = Six()
    six.ask("alice", bandwidth="10KB/s", latency="2s")
    six.ask("bob", bandwidth="50KB/s")
    refused = six.ask("carol", bandwidth="54KB/s")
    assert dict(refused.suback.user_properties)["definite"] == "false"
    assert refused.suback.reason_str.endswith("this is not definite, ask again later")
    six.run(ANSWER_S_MAX + 0.5)
    assert codes(six.ask("dave", bandwidth="54KB/s")) == [0]
