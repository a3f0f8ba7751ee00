"""Does a hub become part of a network with all that it knows?"""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.networks import Net
from tests.broker.talking import Client, new_hub

from betimes.broker.joining import federate, warm_up
from betimes.model.network_settings import NetworkSettings
from betimes.scheduling.choose_next import take_next
from betimes.scheduling.queue_kernels import promise_of_links, put_rows, take_rows
from betimes.scheduling.strategies import STRATEGIES, strategy_named


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_can_be_warmed_up(strategy):
    warm_up(strategy)
    kernels: list[Any] = [take_next, put_rows, take_rows, promise_of_links, strategy_named(strategy).appraise]
    assert all(each.signatures for each in kernels)


def test_what_clients_want_already_is_in_the_first_bulletin():
    hub = new_hub()
    Client(hub, "alice").subscribe("news/#", qos=1)
    federation = federate(hub, NetworkSettings(secret="hush"), epoch=1)
    (wish,) = federation.bulletins.wishes("b1").values()
    assert wish.pattern == "news/#"


def test_what_cannot_be_forwarded_is_counted_by_the_hub():
    net = Net("a", "b")
    net.join("a", "b")
    net.run(1.0)
    net.client("b", "alice").subscribe("news", properties={"max-delay": "1s"})
    net.run(0.5)
    net.cut("a", "b")
    net.client("a", "bob").publish("news")
    net.run(3.0)
    assert sum(net.hubs["a"].lost.values()) == 1
