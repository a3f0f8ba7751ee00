"""Are the wishes of many told as few?"""

from __future__ import annotations

import math

from tests.broker.talking import Client, new_hub

from betimes.broker.delivery.session import BrokerSubscription
from betimes.broker.links.local_demand import LocalDemand, fetched
from betimes.model.buffer_settings import BufferSettings
from betimes.model.filters import EVERYTHING
from betimes.mqtt.subscribe_options import read_options


def grant(client_id="c1", pattern="news", **options):
    hub = new_hub()
    Client(hub, client_id)
    asked = options.pop("options", None)
    return BrokerSubscription(
        session=hub.sessions[client_id],
        pattern=pattern,
        options=read_options((asked or {}).items()),
        **options,
    )


def test_who_wants_the_same_is_one_wish_with_the_prices_added_up():
    wanted = LocalDemand("a")
    wish = {"filter": "x > 1", "max-delay": "2s"}
    wanted.add(grant("c1", options={**wish, "price": "3"}))
    wanted.add(grant("c2", options={**wish, "price": "4"}))
    (added,), removed = wanted.take_changes()
    assert (added.home, added.pattern, added.filter.text) == ("a", "news", "x > 1")
    assert (added.qos.delay_s_max, added.qos.price, added.subscribers) == (2.0, 7.0, 2)
    assert removed == []
    assert not wanted.has_changed


def test_another_bound_or_pattern_is_another_wish():
    wanted = LocalDemand("a")
    wanted.add(grant(options={"max-delay": "2s"}))
    wanted.add(grant(options={"max-delay": "3s"}))
    wanted.add(grant(pattern="other"))
    added, _ = wanted.take_changes()
    assert len(added) == 3


def test_a_plain_subscription_wants_everything_for_ever():
    wanted = LocalDemand("a")
    wanted.add(grant())
    (added,), _ = wanted.take_changes()
    assert (added.filter, added.qos.delay_s_max, added.qos.price) == (EVERYTHING, math.inf, 1.0)


def test_what_changes_replaces_what_was_told():
    wanted = LocalDemand("a")
    one, other = grant("c1"), grant("c2")
    wanted.add(one)
    (first,), _ = wanted.take_changes()
    wanted.add(other)
    (second,), removed = wanted.take_changes()
    assert (removed, second.subscribers) == ([first.id], 2)
    wanted.remove(one)
    wanted.remove(other)
    assert wanted.take_changes() == ([], [second.id])
    assert len(wanted._demands) == 0


def test_what_comes_and_goes_between_two_bulletins_is_not_told():
    wanted = LocalDemand("a")
    passing = grant()
    wanted.add(passing)
    wanted.remove(passing)
    assert wanted.take_changes() == ([], [])


def test_a_shared_subscription_counts_as_one_subscriber():
    wanted = LocalDemand("a")
    wanted.add(grant("c1", group="g", options={"price": "4"}))
    wanted.add(grant("c2", group="g", options={"price": "2"}))
    (added,), _ = wanted.take_changes()
    assert (added.subscribers, added.qos.price) == (1, 3.0)


def test_what_a_broker_keeps_for_who_may_come_is_told_once_and_counts_nobody():
    wanted = LocalDemand(
        "b1", fetched("b1", BufferSettings(fetch=("a/#", "b"), fetch_price=0.5, fetch_within_s=3.0))
    )
    assert wanted.has_changed
    added, removed = wanted.take_changes()
    assert [(each.pattern, each.subscribers, each.qos.price, each.qos.delay_s_max) for each in added] == [
        ("a/#", 0, 0.5, 3.0),
        ("b", 0, 0.5, 3.0),
    ]
    assert removed == []
    assert not wanted.has_changed
