"""Is a link named as people write it, and is a recipe the paper's unless told otherwise?"""

from __future__ import annotations

from betimes.model.distributions import Constant, Uniform
from betimes.model.topology import LayeredWorld, Link


def test_a_link_is_named_by_its_ends():
    assert Link(source="a", target="b", s_per_kb_mean=0.05).name == "a->b"


def test_a_recipe_has_the_papers_numbers():
    recipe = LayeredWorld(link_s_per_kb=Uniform(0.05, 0.1), attribute_values=Uniform(0, 10))
    assert (sum(recipe.layers), recipe.layers[-1] * recipe.subscribers_per_broker) == (32, 160)
    assert recipe.size_kb == Constant(50.0)
    assert recipe.publisher_rate_per_s * 60 == 15
