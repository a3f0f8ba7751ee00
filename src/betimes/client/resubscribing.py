"""How does a client go on with its subscriptions at the next broker?

It asks for all of them anew. What is refused, but not definitely, as the broker says, is asked for again,
ever later: links and publishers come back after a broker does. What that means for what was reserved is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from betimes.client.errors import RefusedError
from betimes.client.subscriptions import Subscription

PAUSE_S_MIN, PAUSE_S_MAX = 0.05, 5.0  # between two attempts

Ask = Callable[[Subscription, int], Awaitable[None]]


class BackOff:
    """The pauses between attempts: ever longer, and not for ever."""

    def __init__(self, end_s: float) -> None:
        self.end_s = end_s
        self._pause_s = PAUSE_S_MIN

    def pause_s(self, now_s: float) -> float | None:
        """Return how long to wait for the next attempt; None where that would be too late."""
        pause_s, self._pause_s = self._pause_s, min(2.0 * self._pause_s, PAUSE_S_MAX)
        return None if now_s + pause_s > self.end_s else pause_s


async def ask_for_all(
    wanted: Mapping[int, Subscription],
    open_now: Mapping[int, Subscription],
    ask: Ask,
    *,
    end_s: float,
    now_s: Callable[[], float],
) -> None:
    """Ask for those of the wanted that are still open; a refusal that stays to the end is raised."""
    back_off, left = BackOff(end_s), dict(wanted)
    while True:
        refused: RefusedError | None = None
        for identifier, subscription in list(left.items()):
            try:
                if identifier in open_now:
                    await _ask_for(subscription, identifier, ask)
                del left[identifier]
            except RefusedError as error:
                if error.is_definite:
                    raise
                refused = error
        if refused is None:
            return
        pause_s = back_off.pause_s(now_s())
        if pause_s is None:
            raise refused
        await asyncio.sleep(pause_s)


async def _ask_for(subscription: Subscription, identifier: int, ask: Ask) -> None:
    was_reserved = subscription.is_reserved
    try:
        await ask(subscription, identifier)
    except RefusedError as error:
        if was_reserved or not error.is_definite:
            subscription.reservation_is("refused", error.why, is_definite=error.is_definite)
        raise
    if subscription.is_reserved:
        subscription.reservation_is("accepted")
    elif was_reserved:
        subscription.reservation_is("refused", subscription.answer, is_definite=True)
