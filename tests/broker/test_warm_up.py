"""Is everything compiled before a broker serves?"""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.replay.test_buffer import keeping_hub
from tests.broker.replay.test_resume import ids, resume
from tests.broker.talking import Client

from betimes.broker.warm_up import warm_up
from betimes.mqtt import packet_scan as packet_walk
from betimes.mqtt import packet_writer as telling
from betimes.scheduling.queue_kernels import promise_of_links, put_rows, take_next, take_rows
from betimes.scheduling.strategies import STRATEGIES, strategy_named


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_can_be_warmed_up(strategy):
    warm_up([strategy])
    kernels: list[Any] = [take_next, put_rows, take_rows, promise_of_links, strategy_named(strategy).appraise]
    assert all(each.signatures for each in kernels)


def test_who_comes_back_first_does_not_wait_for_a_compiler():
    warm_up(["fifo"])
    kernels: list[Any] = [packet_walk.walk, telling._write]
    ready = [len(each.signatures) for each in kernels]
    hub = keeping_hub()
    Client(hub, "anna").publish("t", b"1", user_properties=[("a", "1")])
    ben = Client(hub, "ben")
    resume(ben, "b1:0", filter="a = 1")
    assert ids(ben) == ["b1:1"]
    assert [len(each.signatures) for each in kernels] == ready
