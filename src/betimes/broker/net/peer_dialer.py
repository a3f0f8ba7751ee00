"""How does a process reach the other peers of its overlay? It dials each when there is something to say."""

from __future__ import annotations

import asyncio
import logging
import ssl
from typing import TYPE_CHECKING

from betimes.broker.delivery.connection import Connection
from betimes.broker.net.socket_line import Line
from betimes.broker.peers.link import PeerLink
from betimes.broker.peers.settings import split_address

if TYPE_CHECKING:
    from betimes.broker.net.listener import Listener
    from betimes.broker.peers.overlay import PeerOverlay

log = logging.getLogger(__name__)

DIAL_WITHIN_S = 5.0


class PeerLine(Line):
    """A socket that this process opened, to another peer."""

    def __init__(self, listener: Listener, overlay: PeerOverlay, address: str) -> None:
        super().__init__(listener)
        self._overlay = overlay
        self._address = address

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        super().connection_made(transport)
        if self.connection is not None:
            PeerLink(self._overlay, self.connection, self._address, self._listener.now_s()).dial()
            self._listener.flush()

    def _connection(self, peer: str) -> Connection:
        return Connection(self._listener.hub, peer=peer, now_s=self._listener.now_s(), dialled=True)


class PeerDialling:
    """Dials for an overlay, each address once at a time."""

    def __init__(self, listener: Listener, overlay: PeerOverlay) -> None:
        self._listener = listener
        self._overlay = overlay
        plan = overlay.plan
        self._tls = ssl.create_default_context(cafile=plan.authorities) if plan.tls else None
        self._tasks: set[asyncio.Task[None]] = set()
        overlay.mail.dial = self.dial

    def dial(self, address: str) -> None:
        """Begin to dial a peer; the overlay hears whether it is there."""
        task = asyncio.get_running_loop().create_task(self._dial(address))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stop(self) -> None:
        """Dial nobody any more."""
        for task in self._tasks:
            task.cancel()

    async def _dial(self, address: str) -> None:
        host, port = split_address(address)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                await loop.create_connection(
                    lambda: PeerLine(self._listener, self._overlay, address), host, port, ssl=self._tls
                )
        except (OSError, TimeoutError) as error:
            log.info("peer %s: cannot be dialled (%s)", address, str(error) or "no answer")
            self._overlay.dial_failed(address, self._listener.now_s())
            self._listener.flush()
