"""The table of a guarantee's states is whole, and the documents draw it."""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.broker.guarantees.guarantees import TRANSITIONS, Signal, State

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reservations.md"


def diagram() -> str:
    """Return the table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> ASKED: SUBSCRIBE", "    [*] --> RENEWING: the client comes back"]
    for (state, signal), after in TRANSITIONS.items():
        if state is not after:
            target = "[*]" if after is State.ENDED else after.name
            lines.append(f"    {state.name} --> {target}: {signal.value}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("state", [each for each in State if each is not State.ENDED])
def test_every_state_can_be_released_and_left(state):
    assert TRANSITIONS[state, Signal.RELEASED] is State.ENDED


def test_nothing_follows_the_end():
    assert not [pair for pair in TRANSITIONS if pair[0] is State.ENDED]


def test_every_state_is_reached():
    assert set(TRANSITIONS.values()) | {State.ASKED, State.RENEWING} == set(State)


def test_the_documents_draw_the_table():
    assert f"```mermaid\n{diagram()}```" in PAGE.read_text(), "put diagram() into docs/reservations.md"
