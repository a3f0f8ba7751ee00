"""Do points and spreads come out of rows as they should?"""

from __future__ import annotations

import math

import pytest

from betimes.experiments.figure import (
    FigurePlan,
    Levels,
    SeedSpread,
    by_seed,
    curve_means,
    curve_points,
    curves,
    grid,
    paired_ratios,
    panels_over,
    ratio,
    rises,
    show,
    spread,
    value,
)

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


def test_values_ratios_and_curves_are_taken_from_the_rows_that_fit():
    rows = [
        {"seed": seed, "scheme": scheme, "x": x, "y": y * seed}
        for seed in (1, 2)
        for scheme, y in (("a", 2.0), ("b", 1.0))
        for x in (1, 2)
    ]
    assert value(rows, "y", scheme="a", x=1).mean == 3.0
    assert ratio(rows, "y", {"scheme": "a", "x": 1}, {"scheme": "b", "x": 1}).mean == 2.0
    assert curve_means(rows, "x", "y", scheme="b") == [(1.0, 1.5), (2.0, 1.5)]
    assert not rises([(1.0, 1.5), (2.0, 1.5)])
    assert show([(1.0, 1.5)]) == "1.5 at 1"
    assert math.isnan(ratio(rows, "y", {"scheme": "a"}, {"scheme": "none"}).mean)


def test_a_curve_rises_only_if_every_step_goes_up() -> None:
    assert rises([(1, 1.0), (2, 1.5), (3, 2.0)])
    assert not rises([(1, 1.0), (2, 1.0)])


def test_a_curve_is_shown_in_a_few_words() -> None:
    assert show([(1.0, 0.5)]) == "0.5 at 1"


def test_curves_are_drawn_panel_by_panel_and_condition_by_condition() -> None:
    points = curves("x", {"a": "y", "b": "z"}, {"one": {"kind": 1}, "two": {"kind": 2}})
    found = points([{"x": 1, "y": 10 * kind, "z": 20 * kind, "kind": kind} for kind in (1, 2)])
    assert [(each.panel, each.curve, each.x, each.y) for each in found] == [
        ("a", "one", 1.0, 10.0),
        ("a", "two", 1.0, 20.0),
        ("b", "one", 1.0, 20.0),
        ("b", "two", 1.0, 40.0),
    ]


def test_panels_over_one_axis_share_its_label_and_scale() -> None:
    panels = panels_over("nodes", ("a", "hops", "number"), ("b", "latency", "ms"), x_is_logarithmic=True)
    assert [(each.key, each.x_label, each.y_label) for each in panels] == [
        ("a", "nodes", "number"),
        ("b", "nodes", "ms"),
    ]
    assert all(each.x_is_logarithmic for each in panels)


def test_a_grid_has_every_combination_for_each_seed_and_fewer_if_quick() -> None:
    rows = grid(lambda _plan, seed, **cell: {**cell, "seed": seed}, x=Levels((1, 2), (1,)), kind=("a", "b"))
    assert rows(FigurePlan(seeds=(5, 6), quick=True)) == [
        {"x": 1, "kind": kind, "seed": seed} for seed in (5, 6) for kind in ("a", "b")
    ]
    assert [row["x"] for row in rows(FigurePlan(seeds=(5,)))] == [1, 1, 2, 2]
