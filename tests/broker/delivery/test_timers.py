"""Is everything due when it should be, once, and nothing that was put off or taken back?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.delivery.timers import SPARE_ENTRIES_MAX, Timers


def test_what_is_due_comes_in_the_order_of_time():
    deadlines: Timers[str] = Timers()
    for key, due_s in (("late", 9.0), ("first", 1.0), ("second", 2.0)):
        deadlines.set(key, due_s)
    assert list(deadlines.pop_due(2.0)) == ["first", "second"]
    assert "late" in deadlines
    assert list(deadlines.pop_due(2.0)) == []


def test_what_is_put_off_or_taken_back_does_not_come():
    deadlines: Timers[str] = Timers()
    deadlines.set("off", 1.0)
    deadlines.set("off", 5.0)
    deadlines.set("back", 1.0)
    deadlines.discard("back")
    deadlines.discard("never there")
    assert list(deadlines.pop_due(4.0)) == []
    assert list(deadlines.pop_due(5.0)) == ["off"]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 20)), max_size=60), st.integers(0, 20))
def test_it_agrees_with_a_plain_dictionary(steps, now_s):
    deadlines: Timers[int] = Timers()
    plain: dict[int, int] = {}
    for key, due_s in steps:
        if due_s < 0:
            deadlines.discard(key)
            plain.pop(key, None)
        else:
            deadlines.set(key, float(due_s))
            plain[key] = due_s
    due = list(deadlines.pop_due(float(now_s)))
    assert sorted(due) == sorted(key for key, due_s in plain.items() if due_s <= now_s)
    assert len(deadlines) == len(plain) - len(due)


def test_what_was_taken_back_takes_no_room():
    deadlines: Timers[int] = Timers()
    for number in range(10_000):
        deadlines.set(number, 1e9 - number)
        deadlines.discard(number)
    for number in range(10_000):
        deadlines.set(0, 1e9 + number % 2)  # to and fro
    assert len(deadlines._heap) <= SPARE_ENTRIES_MAX + 4
