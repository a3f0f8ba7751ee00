"""Is a link's speed found again, whatever the sizes of its messages, and with a stall among them?"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.replay_tables import write_rows

from betimes.pipeline.tables.shapes import TRANSFERS
from betimes.pipeline.twin import twin as module
from betimes.pipeline.twin.twin import fit_line, measured_links

CHANCE = np.random.default_rng(7)
ROW = {"number": 1, "time_s": 1.0, "age_s": 1.0, "share": 1.0, "origin": "a", "publisher": "p", "source": "a"}


def ones(count: int) -> np.ndarray:
    return np.ones(count)


@given(st.floats(0.0, 0.1), st.floats(0.001, 0.5), st.lists(st.floats(0.1, 50.0), min_size=2, unique=True))
def test_a_line_without_noise_is_found_again(fixed_s, s_per_kb, sizes):
    size_kb = np.array(sizes)
    transfer_s = fixed_s + s_per_kb * size_kb
    line = fit_line(size_kb, transfer_s, ones(len(sizes)))
    told_s = line.delay_s + line.s_per_kb_mean * size_kb
    assert told_s == pytest.approx(transfer_s, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("fixed_s", [0.0, 0.003])
def test_mean_and_deviation_of_a_drawn_link_are_found_again(fixed_s):
    size_kb = CHANCE.uniform(0.5, 4.0, 5_000)
    transfer_s = fixed_s + size_kb * CHANCE.normal(0.05, 0.01, 5_000)
    line = fit_line(size_kb, transfer_s, ones(5_000))
    assert line.s_per_kb_mean == pytest.approx(0.05, rel=0.03)
    assert line.s_per_kb_sd == pytest.approx(0.01, rel=0.15)
    assert line.delay_s == pytest.approx(fixed_s, abs=0.002)


def test_a_short_message_that_met_a_busy_machine_does_not_make_the_link_slow():
    size_kb = np.append(CHANCE.uniform(1.0, 3.0, 200), 0.05)
    transfer_s = np.append(size_kb[:-1] * CHANCE.normal(0.02, 0.001, 200), 1.76)
    line = fit_line(size_kb, transfer_s, ones(201))
    assert line.s_per_kb_mean == pytest.approx(0.02, rel=0.05)
    assert line.s_per_kb_sd < 0.002
    per_kb = transfer_s / size_kb
    assert per_kb.std() > 1.0, "as seconds per kilobyte it does"


def test_of_one_size_nothing_is_fixed_and_the_time_in_all_is_kept():
    transfer_s = np.array([0.1, 0.2, 0.3])
    line = fit_line(np.full(3, 10.0), transfer_s, ones(3))
    assert line.delay_s == 0.0
    assert line.s_per_kb_mean == pytest.approx(0.02)
    assert line.s_per_kb_sd == pytest.approx(transfer_s.std() / 10.0)


def test_where_longer_messages_happen_to_be_faster_the_line_goes_through_zero():
    line = fit_line(np.array([1.0, 2.0]), np.array([0.2, 0.1]), ones(2))
    assert line.delay_s == 0.0
    assert line.s_per_kb_mean == pytest.approx(0.1)


def test_a_row_counts_for_as_many_messages_as_it_stands_for():
    size_kb, transfer_s = np.array([1.0, 1.0]), np.array([0.1, 0.4])
    assert fit_line(size_kb, transfer_s, np.array([2.0, 1.0])).s_per_kb_mean == pytest.approx(0.2)


def test_each_link_of_the_tables_has_a_line(tmp_path, monkeypatch):
    for target, s_per_kb in (("b", 0.1), ("c", 0.3)):
        rows = [ROW | {"target": target, "size_kb": kb, "transfer_s": s_per_kb * kb} for kb in (1.0, 2.0)]
        write_rows(tmp_path, TRANSFERS, rows)
    found = {link.name: link.s_per_kb_mean for link in measured_links(tmp_path)}
    assert found == {"a->b": pytest.approx(0.1), "a->c": pytest.approx(0.3)}
    monkeypatch.setattr(module, "ROWS_READ_MAX", 1)
    assert [link.name for link in measured_links(tmp_path)] == ["a->b"]


def test_where_nothing_travelled_there_are_no_lines(tmp_path):
    (tmp_path / TRANSFERS.name).mkdir()
    assert measured_links(tmp_path) == ()
