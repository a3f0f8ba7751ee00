"""Is everything compiled before a broker serves?"""

from __future__ import annotations

from typing import Any

from tests.server.talking import Client
from tests.server.test_replay_buffer import keeping_hub
from tests.server.test_resuming import ids, resume

from betimes.server import packet_walk, telling
from betimes.server.warming import warm_up


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
