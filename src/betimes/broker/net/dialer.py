"""Dialling neighbours: other brokers until there is a link, other peers when there is something to send."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections.abc import Callable

from betimes.broker.core.connection import Connection
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.federation import Federation
from betimes.broker.net.socket_line import DialedLine, LineOwner
from betimes.broker.net.supervisor import Supervisor
from betimes.broker.net.tls import link_tls_context
from betimes.broker.peers.overlay import PeerCall, PeerOverlay
from betimes.broker.peers.settings import PeerPlan, split_address
from betimes.model.errors import BetimesError
from betimes.model.network_settings import LinkTerms

log = logging.getLogger(__name__)

DIAL_WITHIN_S = 5.0
REDIAL_S_FIRST, REDIAL_S_MAX = 0.1, 5.0
WARN_AFTER_S = 10.0  # brokers that start together are not up at the same moment


def link_tls(terms: LinkTerms, *, named: bool) -> ssl.SSLContext | None:
    """Return how to encrypt a link, if it is; a BetimesError says which file cannot be used.

    With `named` certificates, the link checks the broker's name in place of the host's.
    """
    if not terms.tls:
        return None
    return link_tls_context(terms.authorities, terms.certificate, terms.key, checks_host=not named)


def peer_tls(plan: PeerPlan) -> ssl.SSLContext | None:
    """Return how to encrypt links with peers, if they are."""
    return link_tls_context(plan.authorities) if plan.tls else None


async def _dial(
    listener: LineOwner,
    open_link: Callable[[Connection, float], None],
    host: str,
    port: int,
    tls: ssl.SSLContext | None,
) -> DialedLine | str:
    """Return the line to a neighbour, or why there is none."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(DIAL_WITHIN_S):
            return (
                await loop.create_connection(lambda: DialedLine(listener, open_link), host, port, ssl=tls)
            )[1]
    except (OSError, TimeoutError) as error:
        return f"cannot be dialled ({str(error) or 'no answer'})"


async def keep_link(listener: LineOwner, federation: Federation, terms: LinkTerms) -> None:
    """Keep a link to a neighbour, for ever: dial again with growing pauses while there is none."""
    loop, pause_s = asyncio.get_running_loop(), REDIAL_S_FIRST
    assert terms.host is not None, "without a host the neighbour dials"
    missed_s, is_told = loop.time(), False
    links: list[BrokerLink] = []

    def open_link(connection: Connection, now_s: float) -> None:
        links[:] = [BrokerLink(federation, connection, terms, now_s)]
        links[0].dial()

    while True:
        if terms.to in federation.ends:  # the neighbour was quicker
            await asyncio.sleep(REDIAL_S_MAX)
            continue
        started_s = loop.time()
        try:  # certificates may have been renewed
            tls = link_tls(terms, named=federation.settings.named_certificates)
            line = await _dial(listener, open_link, terms.host, terms.port, tls)
        except BetimesError as error:
            line = str(error)
        if not isinstance(line, str):
            await line.ended.wait()
            if links[0].has_opened:
                missed_s, is_told = loop.time(), False
            else:
                line = f"the connection ended before the link was up ({line.why_ended})"
            if loop.time() - started_s > REDIAL_S_MAX:
                pause_s = REDIAL_S_FIRST
        if isinstance(line, str):
            is_long = loop.time() - missed_s >= WARN_AFTER_S
            level = logging.WARNING if is_long and not is_told else logging.INFO
            log.log(level, "link to %s at %s:%d: %s", terms.to, terms.host, terms.port, line)
            is_told = is_told or is_long
        await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
        pause_s = min(2.0 * pause_s, REDIAL_S_MAX)


class PeerDialer:
    """Dials for an overlay, each address once at a time."""

    def __init__(self, listener: LineOwner, tls: ssl.SSLContext | None, tasks: Supervisor) -> None:
        self._listener = listener
        self._tls = tls
        self._tasks = tasks

    def dial(self, overlay: PeerOverlay, call: PeerCall) -> None:
        """Begin to dial a peer; the overlay hears whether it is there."""
        self._tasks.run(self._dial(overlay, call), f"dialling {call.address}")

    async def _dial(self, overlay: PeerOverlay, call: PeerCall) -> None:
        def open_link(connection: Connection, now_s: float) -> None:
            overlay.open_link(call, connection, now_s)

        line = await _dial(self._listener, open_link, *split_address(call.address), self._tls)
        if isinstance(line, str):
            log.info("peer %s: %s", call.address, line)
            overlay.dial_failed(call, self._listener.now_s())
            self._listener.flush()
