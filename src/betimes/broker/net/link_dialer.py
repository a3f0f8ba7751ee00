"""Dialling the neighbours of a broker, again and again until there is a link."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl

from betimes.broker.core.connection import Connection
from betimes.broker.links.broker_link import BrokerLink
from betimes.broker.links.federation import Federation
from betimes.broker.net.socket_line import DialedLine, LineOwner
from betimes.model.network_settings import LinkTerms

log = logging.getLogger(__name__)

DIAL_WITHIN_S = 5.0
REDIAL_S_FIRST, REDIAL_S_MAX = 0.1, 5.0
WARN_AFTER_S = 10.0  # brokers that start together are not up at the same moment


def link_tls(terms: LinkTerms) -> ssl.SSLContext | None:
    """Return how the neighbour's certificate is to be checked, where the link is encrypted."""
    return ssl.create_default_context(cafile=terms.authorities) if terms.tls else None


async def keep_link(listener: LineOwner, federation: Federation, terms: LinkTerms) -> None:
    """Keep a link to a neighbour, for ever: dial again with growing pauses while there is none."""
    loop, pause_s, tls = asyncio.get_running_loop(), REDIAL_S_FIRST, link_tls(terms)
    assert terms.host is not None, "without a host the neighbour dials"
    missed_s, is_told = loop.time(), False

    def open_link(connection: Connection, now_s: float) -> None:
        BrokerLink(federation, connection, terms, now_s).dial()

    while True:
        if terms.to in federation.ends:  # the neighbour was quicker
            await asyncio.sleep(REDIAL_S_MAX)
            continue
        started_s = loop.time()
        try:
            async with asyncio.timeout(DIAL_WITHIN_S):
                _, line = await loop.create_connection(
                    lambda: DialedLine(listener, open_link), terms.host, terms.port, ssl=tls
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
