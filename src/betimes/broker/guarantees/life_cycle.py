"""The life cycle of one guarantee: states, signals, and the table of transitions.

Rules for editing: every transition stands in `TRANSITIONS` and nowhere else; a pair that is not in the table
is a bug. A test compares the diagram in docs/reservations.md with the table.
"""

from __future__ import annotations

from enum import Enum


class State(Enum):
    """Where a guarantee stands; clients see the values."""

    ASKED = "asked"  # its client waits for the SUBACK
    TRYING = "trying"  # refused; the broker finds out what would fit, and its client still waits
    RENEWING = "renewing"  # asked for again, or for more: no client waits for a SUBACK
    HELD = "accepted"
    INTERRUPTED = "interrupted"  # a link on the route is lost; the network looks for another route
    DENIED = "refused"  # lost later, and asked for again, ever later
    ENDED = "ended"


class Signal(Enum):
    """What happens to a guarantee."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    INTERRUPTED = "interrupted"
    NOTHING_FITS = "all alternatives tried"
    TIMED_OUT = "no answer in time"
    RELEASED = "released"


_AFTER_SUBACK = (State.RENEWING, State.HELD, State.INTERRUPTED, State.DENIED)

TRANSITIONS: dict[tuple[State, Signal], State] = {
    (State.ASKED, Signal.ACCEPTED): State.HELD,
    (State.ASKED, Signal.REFUSED): State.TRYING,
    (State.ASKED, Signal.TIMED_OUT): State.ENDED,
    (State.ASKED, Signal.RELEASED): State.ENDED,
    (State.TRYING, Signal.NOTHING_FITS): State.ENDED,
    (State.TRYING, Signal.TIMED_OUT): State.ENDED,
    (State.TRYING, Signal.RELEASED): State.ENDED,
    **{(state, Signal.ACCEPTED): State.HELD for state in _AFTER_SUBACK},
    **{(state, Signal.INTERRUPTED): State.INTERRUPTED for state in _AFTER_SUBACK},
    **{(state, Signal.REFUSED): State.DENIED for state in _AFTER_SUBACK},
    **{(state, Signal.RELEASED): State.ENDED for state in _AFTER_SUBACK},
}
