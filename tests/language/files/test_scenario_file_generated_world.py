"""Is a recipe read as it was written, with the paper's numbers where nothing is?"""

from __future__ import annotations

import tomllib

import pytest

from betimes.language.files.scenario_file import read_world
from betimes.language.files.table_reader import Mistakes, TomlTable
from betimes.model.distributions import Constant, Exponential, Uniform
from betimes.model.errors import FileMistakesError
from betimes.model.topology import Fault, FaultKind, LayeredWorld, Tier


def world_of(text: str) -> LayeredWorld:
    """Return the world under [generate]; raise its mistakes."""
    top = TomlTable(tomllib.loads(f"[generate]\n{text}"), "", Mistakes())
    world = read_world(top, title="w", duration_s=7200.0, processing_s=0.002)
    top.mistakes.raise_if_any("x.toml")
    return world


def test_nothing_said_is_the_paper():
    assert world_of("") == LayeredWorld(
        name="w",
        duration_s=7200.0,
        processing_s=0.002,
        layers=(4, 4, 8, 16),
        upstream=2,
        subscribers_per_broker=10,
        link_s_per_kb=Uniform(0.050, 0.100),
        link_s_per_kb_sd=0.020,
        publisher_rate_per_s=0.25,
        gaps="uniform",
        size_kb=Constant(50.0),
        attributes=("A1", "A2"),
        attribute_values=Uniform(0.0, 10.0),
        deadline_s=Uniform(10.0, 30.0),
    )


def test_tiers_take_the_place_of_the_papers_deadline():
    world = world_of(
        'tiers = [{ max_delay = "10s", price = 3 }, { max_delay = "30s", price = 2, weight = 2 }]'
    )
    assert world.deadline_s is None
    assert world.tiers == (Tier(delay_s_max=10.0, price=3.0), Tier(delay_s_max=30.0, price=2.0, weight=2.0))


def test_both_sides_may_state_a_bound():
    world = world_of('deadline = "20s"\ntiers = [{ max_delay = "10s", price = 3 }]')
    assert world.deadline_s == Constant(20.0)
    assert len(world.tiers) == 1


def test_every_number_of_the_paper_can_be_changed():
    world = world_of(
        """
        layers = [2, 3]
        upstream = 1
        subscribers_per_broker = 5
        link_mean = "60ms/KB"
        link_deviation = "0ms/KB"
        rate = "2/s"
        gaps = "exponential"
        size = { exponential = "20KB" }
        attributes = ["x"]
        values = { uniform = [-1, 1] }
        """
    )
    assert (world.layers, world.upstream, world.subscribers_per_broker) == ((2, 3), 1, 5)
    assert (world.link_s_per_kb, world.link_s_per_kb_sd) == (Constant(0.06), 0.0)
    assert (world.publisher_rate_per_s, world.gaps, world.size_kb) == (2.0, "exponential", Exponential(20.0))
    assert (world.attributes, world.attribute_values) == (("x",), Uniform(-1.0, 1.0))


def test_faults_stand_beside_the_recipe():
    world = world_of('[[faults]]\nbroker = "b2.1"\nat = "1m"')
    assert world.faults[0] == Fault(kind=FaultKind.BROKER, name="b2.1", at_s=60.0, lasts_s=float("inf"))


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("layers = [4]", "generate.layers"),
        ("layers = [4, 0]", "generate.layers"),
        ("layers = [9000, 9000]", "generate.layers"),
        ("layers = [400, 400]", "generate.layers"),
        ("layers = 4", "generate.layers"),
        ("upstream = 0", "generate.upstream"),
        ("upstream = 5", "generate.upstream"),
        ("subscribers_per_broker = 100_000", "generate.subscribers_per_broker"),
        ("subscribers_per_broker = 2.5", "generate.subscribers_per_broker"),
        ('link_mean = "0ms/KB"', "generate.link_mean"),
        ('link_mean = "60ms"', "generate.link_mean"),
        ("link_deviation = 20", "generate.link_deviation"),
        ('rate = "0/min"', "generate.rate"),
        ('rate = "-15/min"', "generate.rate"),
        ('gaps = "poisson"', "generate.gaps"),
        ('size = "0KB"', "generate.size"),
        ("attributes = []", "generate.attributes"),
        ('attributes = ["A", "A"]', "generate.attributes"),
        ('values = "high"', "generate.values"),
        ("deadline = 20", "generate.deadline"),
        ('tiers = [{ max_delay = "10s" }]', "generate.tiers[0].price"),
        ('tiers = [{ price = 3, max_delay = "0s" }]', "generate.tiers[0].max_delay"),
        ('tiers = [{ price = 3, max_delay = "1s", weight = 0 }]', "generate.tiers[0].weight"),
        ("layer = [4, 4]", "generate.layer"),
    ],
)
def test_one_mistake_is_found_at_its_place_and_no_other(line, place):
    with pytest.raises(FileMistakesError) as caught:
        world_of(line)
    assert [mistake.place for mistake in caught.value.mistakes] == [place]


def test_an_empty_list_of_tiers_is_a_mistake():
    with pytest.raises(FileMistakesError, match="tiers: there are no tiers"):
        world_of("tiers = []")
