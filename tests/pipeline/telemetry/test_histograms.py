"""Is a spread what numpy would say, in whatever order and from however many files it is counted?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.pipeline.tables.files import folder_values
from betimes.pipeline.telemetry.histograms import (
    ZERO_CELL,
    HistogramShape,
    Measure,
    cell_ends,
    cells_of,
    counted,
    spreads,
)

NO_SPARK: Any = None
SPEED = Measure(keys=("source", "target"), value="transfer_s", divisor="size_kb")


def spread_of(values, weights=None):
    values = np.asarray(values, float)
    weights = np.ones(len(values)) if weights is None else np.asarray(weights, float)
    _, cells = counted(np.zeros(len(values), np.int64), values, weights)
    return HistogramShape.of(cells)


@pytest.mark.long
@given(st.floats(1e-12, 1e12))
def test_every_value_lies_in_its_cell(value):
    cell, steps = cells_of(np.array([value]))
    low, high = cell_ends(int(cell[0]))
    assert low <= value < high
    assert high - low <= value / 32
    assert math.ldexp(steps[0], int(cell[0]) // 64 - 14) == pytest.approx(value, rel=1e-4)


def test_zero_has_a_cell_of_its_own():
    assert cells_of(np.array([0.0, 0.5]))[0].tolist() == [ZERO_CELL, 0]
    found = spread_of([0.0, 0.0, 0.0, 4.0])
    assert (found.mean, found.variance, found.least) == (1.0, 3.0, 0.0)
    assert found.quantile(0.5) == 0.0
    assert found.histogram(10).weights[0] == 3.0


@pytest.mark.long
@given(st.lists(st.tuples(st.floats(1e-6, 1e3), st.integers(1, 100)), min_size=1, max_size=50))
def test_mean_and_variance_are_those_of_the_weighted_values(pairs):
    values, weights = np.array(pairs, float).T
    found = spread_of(values, weights)
    mean = np.average(values, weights=weights)
    assert found.count == weights.sum()
    assert found.mean == pytest.approx(mean, rel=1e-4)
    variance = np.average((values - mean) ** 2, weights=weights)
    assert found.variance == pytest.approx(variance, rel=1e-3, abs=1e-3 * mean**2)


def test_quantiles_and_histogram_follow_the_values():
    values = np.random.default_rng(1).gamma(4.0, 0.01, 20_000)
    found = spread_of(values)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert found.quantile(share) == pytest.approx(np.quantile(values, share), rel=0.02)
    histogram = found.histogram()
    assert sum(histogram.weights) == pytest.approx(20_000)
    assert histogram.mean == pytest.approx(values.mean(), rel=0.01)
    assert histogram.variance == pytest.approx(values.var(), rel=0.05)


def test_an_outlier_does_not_hide_the_rest():
    found = spread_of([*np.linspace(0.001, 0.002, 5000), 1000.0])
    assert found.histogram().width < 1e-5
    assert found.mean == pytest.approx((1.5e-3 * 5000 + 1000) / 5001, rel=1e-4)


def test_what_never_varies_has_a_narrow_histogram():
    found = spread_of([0.04] * 10)
    assert found.variance == pytest.approx(0.0, abs=1e-9)
    assert found.histogram().mean == pytest.approx(0.04, rel=0.02)


def test_groups_are_counted_apart_even_when_they_are_very_many():
    groups = np.arange(3000, dtype=np.int64) * 5_000_000
    found, cells = counted(groups, np.geomspace(1e-9, 1e9, 3000), np.ones(3000))
    assert sorted(found.tolist()) == groups.tolist()
    assert cells.rows.tolist() == [1] * 3000


def test_columns_that_folders_say_are_read_from_the_path():
    assert folder_values("/x/target=a%3Db/source=c/part.parquet") == {"target": "a=b", "source": "c"}


@pytest.mark.spark
def test_the_same_comes_out_however_rows_are_divided(spark, tmp_path):
    chance = np.random.default_rng(7)
    rows = 3000
    table = pa.table(
        {
            "source": [f"a{number}" for number in chance.integers(0, 3, rows)],
            "target": [f"b{number}" for number in chance.integers(0, 2, rows)],
            "share": np.where(np.arange(rows) % 2, 1.0, 0.01),
            "transfer_s": chance.exponential(1.0, rows),
            "size_kb": chance.uniform(1.0, 50.0, rows),
        }
    )
    pq.write_table(table, tmp_path / "whole.parquet")
    parts = []
    for number in range(6):
        third, target = number % 3, f"b{number // 3}"
        chosen = pa.compute.and_(
            pa.array(np.arange(rows) % 3 == third), pa.compute.equal(table["target"], target)
        )
        path = tmp_path / f"target={target}" / f"{third}.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(table.filter(chosen).drop_columns(["target"]), path, row_group_size=50)
        parts.append(str(path))
    whole = spreads(spark, [str(tmp_path / "whole.parquet")], SPEED)
    assert len(whole) == 6
    assert spreads(spark, parts, SPEED) == whole


def test_without_files_there_are_no_spreads():
    assert spreads(NO_SPARK, [], SPEED) == {}
