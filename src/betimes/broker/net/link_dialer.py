"""How does a broker reach its neighbours? It dials, and dials again."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from typing import TYPE_CHECKING

from betimes.broker.delivery.connection import Connection
from betimes.broker.links.broker_link import LinkEnd
from betimes.broker.net.socket_line import Line
from betimes.model.network_settings import LinkTerms

if TYPE_CHECKING:
    from betimes.broker.net.listener import Listener

log = logging.getLogger(__name__)

DIAL_WITHIN_S = 5.0
REDIAL_S_FIRST, REDIAL_S_MAX = 0.1, 5.0
WARN_AFTER_S = 10.0  # brokers that start together are not up at the same moment


class DialledLine(Line):
    """A socket that this broker opened, to a neighbour."""

    def __init__(self, listener: Listener, terms: LinkTerms) -> None:
        super().__init__(listener)
        self._terms = terms
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say who we are."""
        super().connection_made(transport)
        federation = self._listener.hub.federation
        if self.connection is not None and federation is not None:
            LinkEnd(federation, self.connection, self._terms, self._listener.now_s()).dial()
            self._listener.flush()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the neighbour is gone."""
        super().connection_lost(error)
        self.ended.set()

    def _connection(self, peer: str) -> Connection:
        return Connection(self._listener.hub, peer=peer, now_s=self._listener.now_s(), dialled=True)


def link_tls(terms: LinkTerms) -> ssl.SSLContext | None:
    """Return how the neighbour's certificate is to be checked, where the link is encrypted."""
    return ssl.create_default_context(cafile=terms.authorities) if terms.tls else None


async def keep_link(listener: Listener, terms: LinkTerms) -> None:
    """Keep a link to a neighbour, for ever: dial again, ever later, as long as it cannot be had."""
    loop, pause_s, tls = asyncio.get_running_loop(), REDIAL_S_FIRST, link_tls(terms)
    assert terms.host is not None, "without a host it is the neighbour who dials"
    missed_s, is_told = loop.time(), False
    while True:
        federation = listener.hub.federation
        if federation is not None and terms.to in federation.ends:  # the neighbour was quicker
            await asyncio.sleep(REDIAL_S_MAX)
            continue
        started_s = loop.time()
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                _, line = await loop.create_connection(
                    lambda: DialledLine(listener, terms), terms.host, terms.port, ssl=tls
                )
        except (OSError, TimeoutError) as error:
            is_long = loop.time() - missed_s >= WARN_AFTER_S
            level = logging.WARNING if is_long and not is_told else logging.INFO
            log.log(level, "link to %s: cannot be dialled (%s)", terms.to, str(error) or "no answer")
            is_told = is_told or is_long
        else:
            await line.ended.wait()
            missed_s, is_told = loop.time(), False
            if loop.time() - started_s > REDIAL_S_MAX:
                pause_s = REDIAL_S_FIRST
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
        pause_s = min(2.0 * pause_s, REDIAL_S_MAX)
