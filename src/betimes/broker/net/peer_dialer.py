"""Dialling other peers of an overlay, when there is something to send to them."""

from __future__ import annotations

import asyncio
import logging
import ssl

from betimes.broker.core.connection import Connection
from betimes.broker.net.socket_line import DialedLine, LineOwner
from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.overlay import PeerOverlay
from betimes.broker.peers.settings import PeerPlan, split_address

log = logging.getLogger(__name__)

DIAL_WITHIN_S = 5.0


class PeerDialer:
    """Dials for an overlay, each address once at a time."""

    def __init__(self, listener: LineOwner, tls: ssl.SSLContext | None) -> None:
        self._listener = listener
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    def dial(self, overlay: PeerOverlay, address: str) -> None:
        """Begin to dial a peer; the overlay hears whether it is there."""
        task = asyncio.get_running_loop().create_task(self._dial(overlay, address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Dial no peer any more."""
        for task in self._tasks:
            task.cancel()

    async def _dial(self, overlay: PeerOverlay, address: str) -> None:
        host, port = split_address(address)
        loop = asyncio.get_running_loop()

        def open_link(connection: Connection, now_s: float) -> None:
            PeerLink(overlay, connection, address, now_s).dial()

        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await loop.create_connection(
                    lambda: DialedLine(self._listener, open_link), host, port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            log.info("peer %s: cannot be dialled (%s)", address, str(error) or "no answer")
            overlay.dial_failed(address, self._listener.now_s())
            self._listener.flush()


def peer_tls(plan: PeerPlan) -> ssl.SSLContext | None:
    """Return how the certificates of peers are checked, where links are encrypted."""
    return ssl.create_default_context(cafile=plan.authorities) if plan.tls else None
