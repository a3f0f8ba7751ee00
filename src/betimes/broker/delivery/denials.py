"""Denied logins, publications, subscriptions, links and quotas: counted, and logged at a bounded rate.

A flood of denials must not flood the log: a few a second are logged one by one, the others by their number.
"""

from __future__ import annotations

import logging
from collections import Counter
from enum import StrEnum

from betimes.broker.delivery.rate_limit import TokenBucket

log = logging.getLogger(__name__)

LOGGED_PER_S = 5.0
TEXT_LETTERS_MAX = 200  # of a client's own words in the log


class DenialKind(StrEnum):
    """What a client was denied."""

    LOGIN = "login"
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    LINK = "link"  # to one that says it is a neighbour
    QUOTA = "quota"  # more than an account, or all of them together, may have


class Denials:
    """What clients were denied, by kind."""

    def __init__(self) -> None:
        self.count: Counter[DenialKind] = Counter()
        self._pace = TokenBucket(LOGGED_PER_S)
        self._left_out = 0

    def note(self, kind: DenialKind, client: str, about: str, now_s: float) -> None:
        """Count and log that a client was denied something; `client` is a client id or an address."""
        self.count[kind] += 1
        if not self._pace.take(now_s):
            self._left_out += 1
            return
        others = f" ({self._left_out} more denials were not logged)" if self._left_out else ""
        self._left_out = 0
        most = TEXT_LETTERS_MAX
        log.warning("denied: %s of %.*r: %.*r%s", kind, most, client, most, about, others)
