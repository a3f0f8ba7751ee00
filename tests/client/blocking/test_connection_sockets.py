"""Is a socket to a broker opened in time, and closed where that fails?"""

from __future__ import annotations

import socket
import ssl

import pytest
from tests.interop.brokers import HOST

from betimes.client.addresses import Address
from betimes.client.blocking.connection import open_socket
from betimes.client.settings import Place

pytestmark = pytest.mark.live


def test_a_socket_is_open_and_does_not_wait_for_more_to_send():
    with socket.create_server((HOST, 0)) as server:
        place = Place(address=Address(host=HOST, port=server.getsockname()[1]), tls=None)
        with open_socket(place, 5.0) as found:
            assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert found.gettimeout() == 5.0


def test_a_server_that_does_not_speak_tls_is_given_up_in_time():
    with socket.create_server((HOST, 0)) as server:
        address = Address(scheme="mqtts", host=HOST, port=server.getsockname()[1])
        with pytest.raises(TimeoutError):
            open_socket(Place(address=address, tls=ssl.create_default_context()), 0.2)
        accepted, _ = server.accept()
        with accepted:
            while accepted.recv(10_000):
                pass  # its beginning, and then the end: the socket was closed
