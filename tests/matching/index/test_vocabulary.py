"""Do numbers stand for texts as they should: each its own, and in order where order counts?"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.boxes import nested_texts

from betimes.matching.index.vocabulary import TextCodes, TextOrder, moved_labels

texts = st.text(alphabet="ab\U0001f600é", max_size=6)


def test_forgotten_numbers_are_given_out_again():
    codes = TextCodes()
    assert [codes.code(text) for text in ("a", "b", "c", "a")] == [0, 1, 2, 0]
    codes.keep([0, 2])
    assert len(codes) == 2
    assert [codes.code(text) for text in ("d", "e", "c")] == [1, 3, 2]


@given(st.lists(texts, max_size=60), texts)
def test_labels_are_in_the_order_of_the_texts(ends, text):
    order = TextOrder()
    for end in ends:
        assert order.label(end) is not None
    ordered = [order.place(end) for end in sorted(set(ends))]
    assert all(later - earlier >= 2 for earlier, later in pairwise(ordered))
    place = order.place(text)
    for end in ends:
        label = order.place(end)
        assert (place < label, place == label, place > label) == (text < end, text == end, text > end)


def test_runs_of_ends_find_room_for_long():
    for texts_in_run in (
        [f"{number:05}" for number in range(9000)],
        [f"{number:05}" for number in range(9000, 0, -1)],
    ):
        order = TextOrder()
        assert order.label("~") is not None
        assert all(order.label(text) is not None for text in texts_in_run)


def test_labels_without_room_get_it_by_respacing():
    order, ends, full = TextOrder(), nested_texts(100), False
    for end in ends:
        if order.label(end) is None:
            full = True
            old, new = order.respace()
            assert (np.diff(new) > 2).all()
            assert len(old) == len(new) == len(order)
            assert order.label(end) is not None
    assert full
    assert len(order) == len(set(ends))


def test_bounds_move_with_their_labels():
    old, new = np.array([0.0, 2.0, 4.0]), np.array([-100.0, 0.0, 100.0])
    big = 1.7e308
    bounds = np.array([[0.0, 4.0], [1.0, 3.0], [3.0, 4.0], [-big, big]])
    moved = moved_labels(bounds, old, new)
    assert moved.tolist() == [[-100.0, 100.0], [-99.0, 99.0], [1.0, 100.0], [-big, big]]


def test_only_the_ends_in_use_are_kept():
    order = TextOrder()
    for text in "abc":
        order.label(text)
    label_a, label_c = order.place("a"), order.place("c")
    order.keep([label_a, label_c])
    assert len(order) == 2
    assert order.place("b") == label_c - 1
