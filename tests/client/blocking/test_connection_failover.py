"""Does a line go on at the next broker, and give up when there is no patience left?"""

from __future__ import annotations

import pytest
from tests.client.blocking.test_ranges import address_of, keeping_broker

from betimes.client.addresses import Address
from betimes.client.blocking.connection import DirectConnection, FailoverConnection
from betimes.client.errors import UnreachableError
from betimes.terminal.fleet import free_ports

pytestmark = pytest.mark.live


def nobody() -> Address:
    return Address(scheme="mqtt", host="127.0.0.1", port=free_ports(1)[0])


def test_it_is_open_once_for_all_that_is_done_and_opened_again_after_a_cut():
    with keeping_broker() as broker:
        line = FailoverConnection([address_of(broker)], ca=None, timeout_s=5.0, patience_s=0.0)
        first = line.do(lambda direct: direct)
        assert line.do(lambda direct: direct) is first

        def cut_once(direct: DirectConnection) -> DirectConnection:
            if direct is first:
                raise UnreachableError("cut")
            return direct

        assert line.do(cut_once) is not first
        line.close()


def test_it_goes_on_at_the_next_broker():
    with keeping_broker() as broker:
        there = address_of(broker)
        line = FailoverConnection([nobody(), there], ca=None, timeout_s=5.0, patience_s=10.0)
        line.do(lambda direct: direct)
        assert line.address == there
        line.close()


def test_without_patience_it_says_at_once_that_nobody_is_there():
    with pytest.raises(UnreachableError):
        FailoverConnection([nobody()], ca=None, timeout_s=5.0, patience_s=0.0).do(lambda direct: direct)
