"""A socket to a broker, TCP or TLS, for programs without an event loop."""

from __future__ import annotations

import socket

from betimes.client.settings import Place

READ_BYTES = 256 * 1024


def open_socket(place: Place, timeout_s: float) -> socket.socket:
    """Return a socket that is connected, within the time limit; what goes wrong is an OSError."""
    address = place.address
    bare = socket.create_connection((address.host, address.port), timeout=timeout_s)
    try:
        bare.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bare if place.tls is None else place.tls.wrap_socket(bare, server_hostname=address.host)
    except BaseException:
        bare.close()
        raise
