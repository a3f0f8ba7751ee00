"""Is a network read as it was drawn, and is every mistake in it found?"""

from __future__ import annotations

import math
import tomllib

import pytest

from betimes.language.files.scenario_file import read_faults, read_link, read_network
from betimes.language.files.table_reader import Mistakes, TomlTable
from betimes.model.distributions import Choice, Constant, Uniform
from betimes.model.errors import FileMistakesError
from betimes.model.guarantees import Guarantee, Profile
from betimes.model.subscriptions import QoS
from betimes.model.topology import Fault, FaultKind, Link

SMALL = """
brokers = [{ name = "a" }, { name = "b" }]
links = [{ from = "a", to = "b", mean = "75ms/KB" }]
publishers = [{ name = "p", broker = "a", rate = "15/min", attributes = { speed = 5, kind = "car" } }]
subscribers = [{ name = "s", broker = "b", filter = "speed > 3" }]
"""


def network_of(top):
    """Return the network that a table describes, with a title and times that do not matter here."""
    return read_network(top, title="small", duration_s=60.0, processing_s=0.0)


def table_of(text: str) -> TomlTable:
    return TomlTable(tomllib.loads(text), "", Mistakes())


def mistakes_in(text: str) -> dict[str, str]:
    """Return the mistakes of a network, by place."""
    top = table_of(text)
    network_of(top)
    try:
        top.mistakes.raise_if_any("x.toml")
    except FileMistakesError as error:
        return {mistake.place: f"{mistake.problem} {mistake.hint}" for mistake in error.mistakes}
    return {}


def small_with(**changes: str) -> str:
    """Return the small network with some of its lines replaced."""
    lines = dict(line.split(" = ", 1) for line in SMALL.strip().splitlines())
    return "\n".join(f"{key} = {value}" for key, value in {**lines, **changes}.items())


def test_a_small_network_is_read_whole():
    network = network_of(table_of(SMALL))
    assert network.brokers == ("a", "b")
    assert network.links == (Link(source="a", target="b", s_per_kb_mean=0.075),)
    (publisher,) = network.publishers
    assert (publisher.rate_per_s, publisher.gaps, publisher.access) == (0.25, "exponential", None)
    assert publisher.attributes == {"speed": Constant(5.0), "kind": Choice(("car",))}
    (subscription,) = network.subscriptions
    assert (subscription.id, subscription.home, subscription.qos) == ("s", "b", QoS())
    assert subscription.filter.matches({"speed": 4.0})
    assert mistakes_in(SMALL) == {}


@pytest.mark.parametrize(
    ("written", "link"),
    [
        ('mean = "75ms/KB"', Link(source="a", target="b", s_per_kb_mean=0.075)),
        (
            'mean = "75ms/KB"\ndeviation = "20ms/KB"',
            Link(source="a", target="b", s_per_kb_mean=0.075, s_per_kb_sd=0.02),
        ),
        ('rate = "20KB/s"', Link(source="a", target="b", s_per_kb_mean=0.05)),
        ('rate = "20KB/s"\ndelay = "30ms"', Link(source="a", target="b", s_per_kb_mean=0.05, delay_s=0.03)),
    ],
)
def test_a_link_is_given_by_its_mean_or_by_its_rate(written, link):
    assert read_link(table_of(written), "a", "b") == link


def test_a_link_both_ways_is_two_links():
    text = small_with(links='[{ from = "a", to = "b", rate = "20KB/s", both_ways = true }]')
    assert [link.name for link in network_of(table_of(text)).links] == ["a->b", "b->a"]


def test_an_access_link_leads_from_the_publisher_to_its_broker():
    text = small_with(
        publishers="[" + written("publishers", access='{ mean = "50ms/KB" }') + "]",
        faults='[{ link = "p -> a", at = "1m" }]',
    )
    network = network_of(table_of(text))
    assert network.publishers[0].access == Link(source="p", target="a", s_per_kb_mean=0.05)
    assert network.faults == (Fault(kind=FaultKind.LINK, name="p->a", at_s=60.0, lasts_s=math.inf),)
    assert mistakes_in(text) == {}


def test_a_subscriber_says_how_late_and_for_how_much():
    wish = written("subscribers", max_delay='"10s"', price="3", reliability="0.9", bandwidth='"20KB/s"')
    text = small_with(subscribers=f"[{wish}]")
    (subscription,) = network_of(table_of(text)).subscriptions
    assert subscription.qos == QoS(
        delay_s_max=10.0, price=3.0, reliability=0.9, guarantee=Guarantee(bandwidth_kb_per_s=20.0)
    )
    assert subscription.filter.matches({})


def test_a_subscriber_asks_for_a_guarantee_and_a_publisher_states_its_profile():
    wish = written("subscribers", qos='"bandwidth = any and latency < 100ms"')
    own = written("publishers", qos_profile='"bandwidth = 2KB/s"')
    network = network_of(table_of(small_with(subscribers=f"[{wish}]", publishers=f"[{own}]")))
    assert network.subscriptions[0].qos.guarantee == Guarantee(latency_s_max=0.1)
    assert network.publishers[0].profile == Profile(bandwidth_kb_per_s=2.0)


def test_a_publisher_says_how_large_and_how_soon():
    own = written("publishers", gaps='"constant"', size='{ uniform = ["1KB", "2KB"] }', deadline='"20s"')
    text = small_with(publishers=f"[{own}]")
    (publisher,) = network_of(table_of(text)).publishers
    assert (publisher.size_kb, publisher.deadline_s, publisher.gaps) == (
        Uniform(1.0, 2.0),
        Constant(20.0),
        "constant",
    )


ITEMS = {
    "links": {"from": '"a"', "to": '"b"', "mean": '"1ms/KB"'},
    "publishers": {
        "name": '"p"',
        "broker": '"a"',
        "rate": '"1/s"',
        "attributes": "{ speed = 1, kind = 'x' }",
    },
    "subscribers": {"name": '"s"', "broker": '"b"'},
    "faults": {"broker": '"a"', "at": '"1m"'},
}


def written(key: str, **changes: str) -> str:
    """Return one link, publisher, subscriber or fault with some of its values changed, or left out."""
    values = {name: value for name, value in {**ITEMS[key], **changes}.items() if value}
    return "{ " + ", ".join(f"{name.removesuffix('_')} = {value}" for name, value in values.items()) + " }"


@pytest.mark.parametrize(
    ("key", "changes", "place", "words"),
    [
        ("links", {"to": '"bb"'}, "to", "no broker `bb` did you mean b?"),
        ("links", {"mean": ""}, "mean", "speed is missing"),
        ("links", {"rate": '"1KB/s"'}, "rate", "two ways"),
        ("links", {"mean": "", "rate": '"0KB/s"'}, "rate", "no link"),
        ("links", {"mean": '"0ms/KB"'}, "mean", "more than zero"),
        ("links", {"deviation": '"-1ms/KB"'}, "deviation", "negative"),
        ("links", {"both_ways": '"yes"'}, "both_ways", "true or false"),
        ("publishers", {"name": '"a"'}, "name", "taken by brokers[0]"),
        ("publishers", {"broker": '"x"'}, "broker", "no broker `x`"),
        ("publishers", {"rate": '"-1/s"'}, "rate", "negative"),
        ("publishers", {"rate": '"0/s"'}, "rate", "more than zero"),
        ("publishers", {"rate": ""}, "rate", "missing"),
        ("publishers", {"gaps": '"poisson"'}, "gaps", "exponential"),
        ("publishers", {"size": '"0KB"'}, "size", "more than zero"),
        ("publishers", {"deadline": "20"}, "deadline", "unit"),
        ("publishers", {"attributes": "{ speed = [1] }"}, "attributes.speed", "expected"),
        ("publishers", {"access": "{}"}, "access.mean", "missing"),
        ("publishers", {"access": "5"}, "access", "table was expected"),
        ("subscribers", {"filter": '"speed >> 3"'}, "filter", "speed >> 3"),
        ("subscribers", {"filter": '"colour = 1"'}, "filter", "known attributes: kind, speed"),
        ("subscribers", {"filter": '"sped = NULL"'}, "filter", "did you mean speed?"),
        ("subscribers", {"filter": "5"}, "filter", "text was expected"),
        ("subscribers", {"max_delay": '"10"'}, "max_delay", "unit"),
        ("subscribers", {"max_delay": '"0s"'}, "max_delay", "more than zero"),
        ("subscribers", {"price": "-1"}, "price", "between 0 and"),
        ("subscribers", {"reliability": "1.1"}, "reliability", "between 0 and 1"),
        ("subscribers", {"bandwidth": '"0KB/s"'}, "bandwidth", "more than zero"),
        ("subscribers", {"qos": '"latency < 100"'}, "qos", "a unit is missing here"),
        ("subscribers", {"qos": '"jitter < 1ms"'}, "qos", "known conditions: bandwidth, latency"),
        ("subscribers", {"qos": "5"}, "qos", "text was expected"),
        ("subscribers", {"qos": '"latency < 1s"', "bandwidth": '"1KB/s"'}, "bandwidth", "leave one"),
        ("publishers", {"qos_profile": '"bandwidth = any"'}, "qos_profile", "what its events take"),
        ("publishers", {"qos_profile": '"latency < 1s"'}, "qos_profile", "no condition on `latency`"),
        ("subscribers", {"broker": '"c"'}, "broker", "no broker `c`"),
        ("subscribers", {"broker": ""}, "broker", "missing"),
        ("subscribers", {"prise": "3"}, "prise", "did you mean price?"),
        ("faults", {"broker": '"c"'}, "broker", "no broker `c`"),
        ("faults", {"broker": "", "link": '"b->a"'}, "link", "no link `b->a` known links: a->b"),
        ("faults", {"link": '"a->b"'}, "link", "either"),
        ("faults", {"broker": ""}, "broker", "either"),
        ("faults", {"at": ""}, "at", "missing"),
        ("faults", {"for_": '"0s"'}, "for", "more than zero"),
    ],
)
def test_one_mistake_is_found_at_its_place_and_no_other(key, changes, place, words):
    found = mistakes_in(small_with(**{key: f"[{written(key, **changes)}]"}))
    assert list(found) == [f"{key}[0].{place}"], found
    assert words in next(iter(found.values()))


def test_names_and_links_stand_only_once():
    twice = f"[{written('subscribers')}, {written('subscribers')}]"
    assert "taken by subscribers[0]" in mistakes_in(small_with(subscribers=twice))["subscribers[1].name"]
    brokers = '[{ name = "a" }, { name = "b" }, { name = "a" }]'
    assert "taken by brokers[0]" in mistakes_in(small_with(brokers=brokers))["brokers[2].name"]
    back = written("links", to='"a"', both_ways="true", **{"from": '"b"'})
    assert "already" in mistakes_in(small_with(links=f"[{written('links')}, {back}]"))["links[1].to"]
    loop = written("links", to='"a"')
    assert "to itself" in mistakes_in(small_with(links=f"[{written('links')}, {loop}]"))["links[1].to"]


def test_a_subscriber_that_no_publisher_can_reach_is_named():
    wrong_way = written("links", to='"a"', **{"from": '"b"'})
    for links in ("[]", f"[{wrong_way}]"):
        found = mistakes_in(small_with(links=links))
        assert list(found) == ["subscribers[0].broker"]
        assert "no publisher can reach `b`" in found["subscribers[0].broker"]


@pytest.mark.parametrize("key", ["publishers", "subscribers"])
def test_a_network_without_anyone_is_no_network(key):
    assert mistakes_in(small_with(**{key: "[]"}))[key].startswith(f"there are no {key}")


def test_all_mistakes_are_found_at_once():
    text = small_with(
        links='[{ from = "x", to = "b", mean = "1" }]',
        publishers=f"[{written('publishers', rate='5', size='true')}]",
        subscribers="["
        + written("subscribers", filter="5")
        + ", { name = true, broker = 'b', price = true }]",
        faults='[{ broker = "z", at = "soon" }]',
    )
    assert list(mistakes_in(text)) == [
        "links[0].from",
        "links[0].mean",
        "publishers[0].rate",
        "publishers[0].size",
        "subscribers[0].filter",
        "subscribers[1].name",
        "subscribers[1].price",
        "faults[0].broker",
        "faults[0].at",
    ]


def test_a_network_without_brokers_is_told_so_first():
    found = mistakes_in(small_with(brokers="[]"))
    assert next(iter(found)) == "brokers"
    assert "there are no brokers" in found["brokers"]


def test_the_same_filter_text_is_read_once():
    text = small_with(
        subscribers="["
        + ", ".join(f'{{ name = "s{n}", broker = "b", filter = "speed > 3" }}' for n in range(50))
        + "]"
    )
    subscriptions = network_of(table_of(text)).subscriptions
    assert len({id(subscription.filter) for subscription in subscriptions}) == 1


def test_faults_are_not_checked_against_names_nobody_knows():
    (fault,) = read_faults(table_of('faults = [{ broker = "b2.1", at = "1m", for = "30s" }]'))
    assert fault == Fault(kind=FaultKind.BROKER, name="b2.1", at_s=60.0, lasts_s=30.0)
