"""Does a scenario file become the world it describes, or one message with all that is wrong?"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.language.files.scenario_file import read_scenario
from betimes.model.distributions import Uniform
from betimes.model.errors import FileMistakesError
from betimes.model.events import Value
from betimes.model.topology import LayeredWorld, Scenario

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))

WHOLE = """
name = "two"
duration = "10m"
brokers = [{ name = "a" }, { name = "b" }]
links = [{ from = "a", to = "b", mean = "75ms/KB" }]
publishers = [{ name = "p", broker = "a", rate = "15/min", attributes = { speed = 5 } }]
subscribers = [{ name = "s", broker = "b", filter = "speed > 3" }]
"""


def mistakes_in(text: str) -> dict[str, str]:
    """Return what is wrong with a file, by place."""
    with pytest.raises(FileMistakesError) as caught:
        read_scenario(text, "x.toml")
    return {mistake.place: f"{mistake.problem} {mistake.hint}" for mistake in caught.value.mistakes}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_read(path):
    assert isinstance(read_scenario(path.read_text(), path.name), Scenario | LayeredWorld)


def test_the_papers_file_says_no_more_than_generate_alone():
    alone = read_scenario("[generate]", "alone")
    paper = read_scenario((ROOT / "examples" / "paper.toml").read_text(), "paper.toml")
    assert isinstance(alone, LayeredWorld)
    assert isinstance(paper, LayeredWorld)
    assert [getattr(alone, name) for name in LayeredWorld.__slots__ if name != "name"] == [
        getattr(paper, name) for name in LayeredWorld.__slots__ if name != "name"
    ]


def test_the_paper_with_prices_has_three_tiers_and_no_deadline():
    world = read_scenario((ROOT / "examples" / "paper_prices.toml").read_text(), "paper_prices.toml")
    assert isinstance(world, LayeredWorld)
    assert [(tier.delay_s_max, tier.price) for tier in world.tiers] == [(10.0, 3.0), (30.0, 2.0), (60.0, 1.0)]
    assert world.deadline_s is None


def test_the_city_has_all_that_a_network_can_have():
    city = read_scenario((ROOT / "examples" / "city.toml").read_text(), "city.toml")
    assert isinstance(city, Scenario)
    assert (len(city.brokers), len(city.publishers), len(city.subscriptions), len(city.faults)) == (
        6,
        3,
        8,
        1,
    )
    assert any(link.delay_s for link in city.links)
    assert any(publisher.access for publisher in city.publishers)
    event: dict[str, Value] = {"kind": "bus", "road": "ring-east", "speed": 90.0}
    wanting = {subscription.id for subscription in city.subscriptions if subscription.filter.matches(event)}
    assert wanting == {"bus-company", "ring-road-office", "archive"}


def test_a_whole_file_is_read_with_its_defaults():
    scenario = read_scenario(WHOLE, "x.toml")
    assert isinstance(scenario, Scenario)
    assert (scenario.name, scenario.duration_s, scenario.processing_s) == ("two", 600.0, 0.002)


def test_the_time_and_name_of_a_generated_world_can_be_set():
    world = read_scenario('name = "short"\nduration = "5m"\nprocessing = "0s"\n[generate]', "x.toml")
    assert (world.name, world.duration_s, world.processing_s) == ("short", 300.0, 0.0)
    assert isinstance(world, LayeredWorld)
    assert world.deadline_s == Uniform(10.0, 30.0)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing yet\n"])
def test_an_empty_file_is_told_what_to_begin_with(text):
    assert "[generate]" in mistakes_in(text)["file"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = 1\nb = ", "line 2"),
        ("a = 1\n[b\n", "line 2, column 3"),
        ("a = 1\na = 2", "line 2, column 6"),
        ("a = '", "line 1, column 6"),
    ],
)
def test_a_text_that_is_no_toml_is_one_mistake_with_its_line(text, place):
    found = mistakes_in(text)
    assert len(found) == 1
    assert next(iter(found)).startswith(place.split(",")[0])
    assert "not TOML" in next(iter(found.values()))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "1" * 5000])
def test_what_makes_the_toml_reader_stumble_is_a_mistake_of_the_file(text):
    assert list(mistakes_in(text)) == ["file"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (('duration = "10m"', ""), "duration"),
        (('duration = "10m"', 'duration = "0s"'), "duration"),
        (('duration = "10m"', "duration = 600"), "duration"),
        (('name = "two"', "name = 2"), "name"),
        (('name = "two"', 'processing = "-1ms"'), "processing"),
        (('name = "two"', 'subscriber = "s"'), "subscriber"),
    ],
)
def test_a_mistake_at_the_top_is_named_by_its_key(change, place):
    assert list(mistakes_in(WHOLE.replace(*change))) == [place]


def test_a_generated_world_takes_no_brokers_beside_it():
    found = mistakes_in(WHOLE + "\n[generate]")
    assert list(found) == ["brokers", "links", "publishers", "subscribers"]
    assert all("[generate]" in words for words in found.values())


def test_the_message_names_the_file_and_counts_the_mistakes():
    with pytest.raises(FileMistakesError, match=r"^x\.toml: 2 mistakes\n  duration: .*\n  duraton: "):
        read_scenario(WHOLE.replace("duration", "duraton"), "x.toml")


_KEYS = [
    "name",
    "duration",
    "brokers",
    "links",
    "publishers",
    "subscribers",
    "faults",
    "generate",
    "processing",
    "x",
]
_TOML_VALUES = st.recursive(
    st.sampled_from(
        ["1", "-0.5", "true", '"a"', '"10s"', '"speed > 3"', "nan", "inf", "1979-05-27", '"5KB"', "10e300"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "broker",
                    "from",
                    "to",
                    "rate",
                    "filter",
                    "attributes",
                    "at",
                    "layers",
                    "tiers",
                    "size",
                ]
            ),
            inner,
            max_size=4,
        ).map(lambda table: "{ " + ", ".join(f"{key} = {value}" for key, value in table.items()) + " }"),
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(_KEYS), _TOML_VALUES, max_size=6))
def test_any_toml_is_a_world_or_a_list_of_mistakes(data):
    text = "\n".join(f"{key} = {value}" for key, value in data.items())
    tomllib.loads(text)
    try:
        assert isinstance(read_scenario(text, "x.toml"), Scenario | LayeredWorld)
    except FileMistakesError as error:
        assert str(error).startswith("x.toml: ")  # noqa: PT017  (either outcome is right)


@given(st.text(max_size=60))
def test_any_text_is_a_world_or_a_list_of_mistakes(text):
    try:
        read_scenario(text, "x.toml")
    except FileMistakesError as error:
        assert error.mistakes  # noqa: PT017  (either outcome is right)


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of one language on a page of the reference."""
    text = (ROOT / "docs" / "reference" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(2))
def test_every_whole_file_in_the_reference_is_read(number):
    found = blocks("scenarios.md", "toml")
    assert len(found) == 2
    read_scenario(found[number], "scenarios.md")


def test_the_mistakes_shown_in_the_reference_are_those_that_are_found():
    (wrong, shown) = blocks("scenarios.md", "text")
    with pytest.raises(FileMistakesError) as caught:
        read_scenario(wrong, "wrong.toml")
    assert str(caught.value).strip() == shown.strip()
