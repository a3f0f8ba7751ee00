"""Do accounts bound what can be reserved, and does an unused reservation lapse and come back?"""

from __future__ import annotations

import pytest
from tests.broker.guarantees.test_guarantees import Six, codes, news

from betimes.broker.access.authentication import AccessControl
from betimes.model.account_settings import AccountSettings, Grants

QUOTA_EXCEEDED = 0x97


def six_with(**grants: float) -> Six:
    """Six brokers with publishers of cars and bikes at a."""
    accounts = AccountSettings(anonymous=Grants(**grants))  # type: ignore[arg-type]
    six = Six(access_control=AccessControl(anonymous=True, accounts=accounts))
    six.client("a", "other", user_properties=[("advertise", "bikes = 5KB/s")])
    six.run(0.5)
    return six


def publish(six: Six) -> None:
    six.publisher.now_s = six.now_s
    six.publisher.publish("cars")


def test_an_account_reserves_no_more_than_it_may_over_all_its_clients():
    six = six_with(reserved_kb_per_s_max=30.0)
    assert codes(six.ask("alice", bandwidth="20KB/s")) == [0]
    refused = six.ask("bob", "bikes", bandwidth="11KB/s")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str == "bikes: the account of anonymous clients may reserve 30KB/s at most"
    assert codes(six.ask("carol", "bikes", bandwidth="10KB/s")) == [0]


def test_an_account_that_may_reserve_nothing_is_told_so():
    refused = six_with(reserved_kb_per_s_max=0.0).ask("alice", bandwidth="any")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str == "cars: the account of anonymous clients may reserve nothing"


def test_what_publishers_advertise_counts_where_no_bandwidth_is_stated():
    six = six_with(reserved_kb_per_s_max=10.0)
    refused = six.ask("alice", bandwidth="any")  # the publisher of cars advertises 20 KB/s
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert refused.suback.reason_str == (
        "cars: 20KB/s: the account of anonymous clients may reserve 10KB/s at most"
    )
    six.run(1.0)
    assert not six.promised()


@pytest.mark.long
def test_a_reservation_without_messages_lapses_and_comes_back_with_the_first_message():
    """Before, two clients that sent nothing kept all of a link for good."""
    six = six_with(unused_s_max=30.0)
    alice = six.ask("alice", bandwidth="20KB/s")
    assert six.promised()
    six.run(20.0)
    assert six.promised()
    six.run(12.0)
    assert not six.promised()
    assert [each["state"] for each in news(alice)] == ["lapsed"]
    refused = six.ask("bob", bandwidth="20KB/s")
    assert codes(refused) == [QUOTA_EXCEEDED]
    assert "nothing was published for too long" in refused.suback.reason_str
    publish(six)
    six.run(2.0)
    assert six.promised()
    assert [each["state"] for each in news(alice)][-1] == "accepted"


@pytest.mark.long
def test_a_reservation_in_use_does_not_lapse():
    six = six_with(unused_s_max=30.0)
    six.ask("alice", bandwidth="20KB/s")
    for _ in range(4):
        publish(six)
        six.run(20.0)
    assert six.promised()
