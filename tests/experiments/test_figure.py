"""Do points and spreads come out of rows as they should?"""

from __future__ import annotations

import pytest

from betimes.experiments.figure import SeedSpread, by_seed, curve_points, paired_ratios, spread

ROWS = [
    {"strategy": strategy, "rate": rate, "seed": seed, "earning": earning + rate + seed}
    for strategy, earning in (("eb", 10.0), ("fifo", 5.0))
    for rate in (15.0, 1.0)
    for seed in (1, 2, 3)
]


def test_spread_is_mean_and_sample_deviation() -> None:
    assert spread([1.0, 2.0, 3.0]) == SeedSpread(2.0, 1.0, 3)


def test_one_seed_has_no_spread() -> None:
    assert spread([4.0]).sd == 0.0


def test_near_means_within_two_deviations() -> None:
    assert SeedSpread(10.0, 1.0, 5).near(12.0)
    assert not SeedSpread(10.0, 1.0, 5).near(12.1)


def test_a_spread_shows_mean_and_deviation() -> None:
    assert str(SeedSpread(0.42345, 0.0213, 10)) == "0.423 ± 0.021"
    assert str(SeedSpread(0.42345, 0.0, 1)) == "0.423", "one seed has no spread"


def test_a_curve_has_one_point_per_place_in_order() -> None:
    points = curve_points(ROWS, panel="a", curve="eb", x="rate", y="earning", where={"strategy": "eb"})
    assert [(point.x, point.y, point.sd, point.seeds) for point in points] == [
        (1.0, 13.0, 1.0, 3),
        (15.0, 27.0, 1.0, 3),
    ]


def test_by_seed_takes_only_rows_that_fit() -> None:
    assert by_seed(ROWS, "earning", {"strategy": "fifo", "rate": 1.0}) == {1: 7.0, 2: 8.0, 3: 9.0}


def test_ratios_pair_the_same_seeds_and_skip_what_has_nothing_below() -> None:
    assert paired_ratios({1: 4.0, 2: 9.0, 3: 1.0}, {2: 3.0, 1: 2.0, 4: 5.0}) == pytest.approx([2.0, 3.0])
    assert paired_ratios({1: 4.0}, {1: 0.0}) == []
