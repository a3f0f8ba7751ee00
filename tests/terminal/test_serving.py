"""Is an address that cannot be had named, whoever has it?"""

from __future__ import annotations

import socket

import pytest

from betimes.model.errors import BetimesError
from betimes.terminal.serving import address_text, check_free, naming


def test_a_port_that_somebody_listens_on_is_not_free_until_he_is_gone():
    with socket.create_server(("127.0.0.1", 0)) as there:
        port = there.getsockname()[1]
        with pytest.raises(BetimesError, match=f"127.0.0.1:{port}: cannot listen there") as caught:
            check_free("127.0.0.1", port)
        assert "--port" in str(caught.value)
    check_free("127.0.0.1", port)


def test_any_port_will_do_if_none_is_named():
    check_free("127.0.0.1", 0)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "300.1.1.1", "192.0.2.1", "a..b"])
def test_a_host_that_is_not_this_one_is_told_and_nothing_is_said_of_ports(host):
    with pytest.raises(BetimesError, match=f"{host}:1883: cannot listen there") as caught:
        check_free(host, 1883)
    assert "hint: the host must be an address of this machine" in str(caught.value)
    assert "--port" not in str(caught.value)


def test_what_is_no_matter_of_addresses_is_left_as_it_is():
    with pytest.raises(ValueError, match="another"), naming("::1", 1883):
        raise ValueError("another matter")
    assert address_text("::1", 1883) == "[::1]:1883"
