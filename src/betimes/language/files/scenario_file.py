"""Scenario files: TOML becomes a `Scenario` or a `LayeredWorld`.

The result is a `Scenario` if the file lists brokers and links, a `LayeredWorld` if it has [generate]. The
caller reads the file; one `FileMistakesError` lists all mistakes of its text.

Distributions: a plain value is constant; `{ uniform = [low, high] }`, `{ normal = [mean, deviation] }` and
`{ exponential = mean }` vary, and an attribute may also be `{ choice = [...], weights = [...] }`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from betimes.language.files.table_reader import (
    PRICE_MAX,
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    described,
    flag,
    name,
    number,
    number_between,
    one_mistake,
    one_of,
    positive,
    quantity,
    read_toml,
)
from betimes.language.filters.parse import ReadFilter, parse_filter, read_filter
from betimes.language.guarantees import read_guarantee, read_profile
from betimes.language.quantities import (
    read_duration_s,
    read_frequency_per_s,
    read_rate_kb_per_s,
    read_size_kb,
    read_speed_s_per_kb,
)
from betimes.language.suggestions import did_you_mean, quoted
from betimes.model.distributions import (
    Choice,
    Constant,
    Distribution,
    Exponential,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.errors import TextError
from betimes.model.events import Value
from betimes.model.filters import EVERYTHING
from betimes.model.guarantees import Guarantee
from betimes.model.subscriptions import ANY_TOPIC, QoS, Subscription
from betimes.model.topology import Fault, FaultKind, LayeredWorld, Link, Publisher, Scenario, Tier

CHOICES_MAX = 10_000

_NUMBER_SHAPES = ("uniform", "normal", "exponential", "constant")
_ALL_SHAPES = (*_NUMBER_SHAPES, "choice")

Reader = Callable[[object], float]
BROKERS_MAX = 10_000
LINKS_MAX = 100_000
PUBLISHERS_MAX = 100_000
SUBSCRIBERS_MAX = 1_000_000
FAULTS_MAX = 10_000
duration = quantity(read_duration_s, "10s")
size = quantity(read_size_kb, "50KB")
data_rate = quantity(read_rate_kb_per_s, "20KB/s")
frequency = quantity(read_frequency_per_s, "15/min")
speed = quantity(read_speed_s_per_kb, "75ms/KB")
gaps = one_of("exponential", "uniform", "constant")
_RATE_LEAST_KB_PER_S = read_rate_kb_per_s("1B/d")
_UNREAD = ReadFilter(EVERYTHING, frozenset())
LAYERS_MAX = 100
ATTRIBUTES_MAX = 100
TIERS_MAX = 100
_LINK_SPEED_LEAST_S_PER_KB = 0.001  # where 000's draws are cut off
_PAPER_DURATION_S = 7200.0
_PAPER_PROCESSING_S = 0.002
_NETWORK_KEYS = ("brokers", "links", "publishers", "subscribers")
PLACE = "subscriber"


def number_spread(read: Reader, low: float = 0.0) -> Callable[[object], NumberDistribution]:
    """Return a reader of distributions of numbers that `read` parses; their mean must be above zero.

    A normal distribution is cut off at `low`.
    """

    def read_spread(value: object) -> NumberDistribution:
        spread = _number_shape(value, read, low) if isinstance(value, dict) else Constant(read(value))
        if spread.mean <= 0:
            raise WrongValueError("this must be more than zero")
        return spread

    return read_spread


def plain_number_spread(value: object) -> NumberDistribution:
    """Return the distribution of a number without a unit, above zero or not."""
    return _number_shape(value, number, -math.inf) if isinstance(value, dict) else Constant(number(value))


def attribute_spread(value: object) -> Distribution:
    """Return the distribution of an attribute: numbers, or a choice of numbers, texts and flags."""
    if isinstance(value, dict):
        if "choice" in value:
            return _choice(value)
        return _number_shape(value, number, -math.inf, shapes=_ALL_SHAPES)
    constant = _scalar(value)
    return Constant(constant) if isinstance(constant, float) else Choice((constant,))


def _number_shape(
    table: Mapping[str, object], read: Reader, low: float, shapes: tuple[str, ...] = _NUMBER_SHAPES
) -> NumberDistribution:
    if len(table) != 1:
        raise WrongValueError("exactly one shape was expected here", f"one of {', '.join(shapes)}")
    shape, given = next(iter(table.items()))
    match shape:
        case "constant":
            return Constant(read(given))
        case "exponential":
            return Exponential(_more_than_zero(read(given), "the mean"))
        case "uniform":
            first, last = _listed(given, "uniform = [low, high]", read, read)
            if first > last:
                raise WrongValueError("the low end is above the high end", "write uniform = [low, high]")
            return Uniform(first, last)
        case "normal":
            mean, deviation = _listed(given, "normal = [mean, deviation]", read, read)
            if deviation < 0:
                raise WrongValueError("the deviation cannot be negative")
            return Normal(mean, deviation, low)
    raise WrongValueError(f"there is no shape {shape}", did_you_mean(shape, shapes, "shapes"))


def _choice(table: Mapping[str, object]) -> Choice:
    unknown = [key for key in table if key not in ("choice", "weights")]
    if unknown:
        raise WrongValueError(
            f"{unknown[0]} does not go with choice", did_you_mean(unknown[0], ["weights"], "keys here")
        )
    listed, weights = table["choice"], table.get("weights", [])
    if not isinstance(listed, list) or not 0 < len(listed) <= CHOICES_MAX:
        problem = f"choice takes a list of 1 to {CHOICES_MAX:,} values"
        raise WrongValueError(problem, 'write { choice = ["car", "bus"] }')
    if not isinstance(weights, list) or len(weights) not in (0, len(listed)):
        raise WrongValueError(f"as many weights as choices were expected here: {len(listed)}")
    numbers = tuple(number(weight) for weight in weights)
    if numbers and (min(numbers) < 0 or sum(numbers) <= 0):
        raise WrongValueError("weights are zero or more, and not all zero")
    return Choice(tuple(_scalar(item) for item in listed), numbers)


def _scalar(value: object) -> Value:
    if isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        raise WrongValueError(f"a number, a text, true or false was expected here, not {described(value)}")
    return number(value)


def _listed(given: object, form: str, *readers: Reader) -> tuple[float, ...]:
    if not isinstance(given, list) or len(given) != len(readers):
        raise WrongValueError(f"a list of {len(readers)} was expected here", f"write {form}")
    return tuple(read(item) for read, item in zip(readers, given, strict=True))


def _more_than_zero(value: float, what: str) -> float:
    if value <= 0:
        raise WrongValueError(f"{what} must be more than zero")
    return value


def read_network(
    top: TomlTable, *, title: str, duration_s: float, processing_s: float, needs_people: bool = True
) -> Scenario:
    """Return the network in a scenario file; mistakes are noted in the table.

    A file for live brokers needs no publishers and subscribers: clients connect by themselves.
    """
    reader = _NetworkReader(top, needs_people=needs_people)
    brokers = reader.brokers()
    links = reader.links()
    publishers = reader.publishers()
    subscriptions = reader.subscribers(links, publishers)
    access = [publisher.access for publisher in publishers if publisher.access is not None]
    faults = read_faults(top, brokers, [link.name for link in (*links, *access)])
    return Scenario(
        name=title,
        duration_s=duration_s,
        processing_s=processing_s,
        brokers=brokers,
        links=links,
        publishers=publishers,
        subscriptions=subscriptions,
        faults=faults,
    )


class _NetworkReader:
    """Reads one kind of part after the other; knows the names that were given before."""

    def __init__(self, top: TomlTable, *, needs_people: bool) -> None:
        self._top = top
        self._needs_people = needs_people
        self._brokers: dict[str, str] = {}  # name -> place
        self._unknown_brokers = 0  # while a link or publisher has no known end, routes are not checked
        self._filters: dict[str, ReadFilter | TextError] = {}

    def brokers(self) -> tuple[str, ...]:
        """Return the brokers' names."""
        for table in self._top.tables("brokers", BROKERS_MAX, 'write [[brokers]] and name = "b1" below it'):
            _new_name(table, self._brokers)
        if "brokers" not in self._top:
            self._top.complain(
                "brokers", "there are no brokers", 'write [[brokers]] and name = "b1" below it'
            )
        return tuple(self._brokers)

    def links(self) -> tuple[Link, ...]:
        """Return the links, those both ways as two."""
        links: dict[str, Link] = {}
        for table in self._top.tables("links", LINKS_MAX):
            source, target = self._broker(table, "from"), self._broker(table, "to")
            both_ways = table.optional("both_ways", flag, otherwise=False)
            ends = ((source, target), (target, source)) if both_ways else ((source, target),)
            if source == target and source:
                table.complain("to", f"the link leads from {quoted(source)} to itself")
            first = read_link(table, source, target)
            for start, end in ends:
                link = replace(first, source=start, target=end)
                if link.name in links and source != target:
                    table.complain("to", f"there is a link {link.name} already")
                if source and target:  # else a mistake is noted already
                    links[link.name] = link
        return tuple(links.values())

    def publishers(self) -> tuple[Publisher, ...]:
        """Return the publishers."""
        names: dict[str, str] = dict(self._brokers)  # an access link goes from one name to the other
        found: list[Publisher] = []
        hint = "write [[publishers]] with name, broker and rate below it" if self._needs_people else ""
        for table in self._top.tables("publishers", PUBLISHERS_MAX, hint):
            own, broker = _new_name(table, names), self._broker(table, "broker")
            found.append(_publisher(table, own, broker))
        return tuple(found)

    def subscribers(
        self, links: Iterable[Link], publishers: tuple[Publisher, ...]
    ) -> tuple[Subscription, ...]:
        """Return the subscriptions; publishers must be able to reach each, and have its attributes."""
        ways_known = bool(publishers) and not self._unknown_brokers
        reached = _reached(links, (publisher.broker for publisher in publishers))
        attributes = frozenset(name for publisher in publishers for name in publisher.attributes)
        names: dict[str, str] = {}
        found: list[Subscription] = []
        hint = "write [[subscribers]] with name, broker and filter below it" if self._needs_people else ""
        for table in self._top.tables("subscribers", SUBSCRIBERS_MAX, hint):
            own, broker = _new_name(table, names), self._broker(table, "broker")
            if ways_known and broker and broker not in reached:
                advice = "links go one way: add one towards it, or write both_ways = true"
                table.complain("broker", f"no publisher can reach {quoted(broker)}", advice)
            read = self._filter(table)
            if publishers:
                _check_attributes(table, read.attributes, attributes)
            found.append(Subscription(id=own, home=broker, filter=read.filter, qos=read_qos(table)))
        return tuple(found)

    def _broker(self, table: TomlTable, key: str) -> str:
        """Return the broker that a key names; empty if there is none of that name."""
        broker = table.required(key, name, "", '"b1"')
        self._unknown_brokers += broker not in self._brokers
        if broker and broker not in self._brokers:
            hint = did_you_mean(broker, self._brokers, "brokers")
            table.complain(key, f"there is no broker {quoted(broker)}", hint)
            return ""
        return broker

    def _filter(self, table: TomlTable) -> ReadFilter:
        """Return a subscriber's filter; equal texts are parsed once, for many subscribers share theirs."""

        def read(value: object) -> ReadFilter:
            text = any_text(value)
            if text not in self._filters:
                try:
                    self._filters[text] = read_filter(text)
                except TextError as error:
                    self._filters[text] = error
            known = self._filters[text]
            if isinstance(known, TextError):
                raise known
            return known

        return table.optional("filter", read, _UNREAD)


def read_link(table: TomlTable, source: str, target: str) -> Link:
    """Return the link in a table: mean and deviation per kilobyte, or a rate; and a delay."""
    by_rate = "rate" in table
    table.ignore("rate")
    if by_rate == ("mean" in table):
        problem = "mean and rate are two ways to say one thing" if by_rate else "the speed is missing"
        table.complain("rate" if by_rate else "mean", problem, 'write mean = "75ms/KB" or rate = "20KB/s"')
    s_per_kb = table.optional("rate", _speed_of_rate, 1.0) if by_rate else 1.0
    mean = table.optional("mean", positive(speed), s_per_kb)
    return Link(
        source=source,
        target=target,
        s_per_kb_mean=mean,
        s_per_kb_sd=table.optional("deviation", speed, 0.0),
        delay_s=table.optional("delay", duration, 0.0),
    )


def read_faults(
    top: TomlTable, brokers: Iterable[str] | None = None, links: Iterable[str] | None = None
) -> tuple[Fault, ...]:
    """Return the faults of a scenario; their names are checked if the brokers and links are known."""
    known = {
        FaultKind.BROKER: None if brokers is None else frozenset(brokers),
        FaultKind.LINK: None if links is None else frozenset(links),
    }
    found: list[Fault] = []
    for table in top.tables("faults", FAULTS_MAX):
        kind = FaultKind.LINK if "link" in table else FaultKind.BROKER
        if ("link" in table) == ("broker" in table):
            table.complain(
                kind, "a fault has either a link or a broker", 'write link = "a->b" or broker = "b"'
            )
        target = table.optional("link", _link_name, "") or table.optional("broker", name, "")
        names = known[kind]
        if target and names is not None and target not in names:
            table.complain(
                kind, f"there is no {kind} {quoted(target)}", did_you_mean(target, names, f"{kind}s")
            )
        at_s = table.required("at", duration, 0.0, '"10m"')
        lasts_s = table.optional("for", positive(duration), math.inf)
        found.append(Fault(kind=kind, name=target, at_s=at_s, lasts_s=lasts_s))
        table.ignore("broker")  # known, even beside a link
    return tuple(found)


def _publisher(table: TomlTable, own: str, broker: str) -> Publisher:
    access = table.nested("access", lambda inner: read_link(inner, own, broker), None)
    return Publisher(
        name=own,
        broker=broker,
        rate_per_s=table.required("rate", positive(frequency), 1.0, '"15/min"'),
        gaps=table.optional("gaps", gaps, "exponential"),
        attributes=_attributes(table),
        size_kb=table.optional("size", number_spread(size), Constant(1.0)),
        deadline_s=table.optional("deadline", number_spread(duration), None),
        access=access,
        profile=table.optional("qos_profile", lambda value: read_profile(any_text(value)), None),
    )


def _attributes(table: TomlTable) -> Mapping[str, Distribution]:
    inner = table.table("attributes")
    if inner is None:
        return {}
    return {key: inner.optional(key, attribute_spread, Constant(0.0)) for key in inner}


def read_qos(table: TomlTable) -> QoS:
    """Return what a subscriber asks for beside the content."""
    return QoS(
        delay_s_max=table.optional("max_delay", positive(duration), math.inf),
        price=table.optional("price", number_between(0.0, PRICE_MAX), 1.0),
        reliability=table.optional("reliability", number_between(0.0, 1.0), None),
        guarantee=_guarantee(table),
    )


def _guarantee(table: TomlTable) -> Guarantee | None:
    """Return the guarantee: conditions under `qos`, or a bandwidth alone."""
    bandwidth = table.optional("bandwidth", positive(data_rate), None)
    stated = table.optional("qos", lambda value: read_guarantee(any_text(value)), None)
    if "bandwidth" in table and "qos" in table:
        table.complain(
            "bandwidth", "qos and bandwidth are two ways to say one thing", "leave one of them out"
        )
    if bandwidth is not None:
        return Guarantee(bandwidth_kb_per_s=bandwidth)
    return stated


def _new_name(table: TomlTable, taken: dict[str, str]) -> str:
    """Return a thing's own name, and remember it; no two of a kind may share one."""
    own = table.required("name", name, "", '"b1"')
    if own in taken:
        table.complain("name", f"the name {quoted(own)} is taken", f"by {taken[own]}")
    elif own:
        taken[own] = table.place
    return own


def _check_attributes(table: TomlTable, asked: frozenset[str], published: frozenset[str]) -> None:
    for unknown in sorted(asked - published):
        hint = did_you_mean(unknown, sorted(published), "attributes")
        table.complain("filter", f"no publisher has an attribute {quoted(unknown)}", hint)


def _reached(links: Iterable[Link], start: Iterable[str]) -> frozenset[str]:
    """Return the brokers that can be reached from any of the first ones."""
    onward: dict[str, list[str]] = {}
    for link in links:
        onward.setdefault(link.source, []).append(link.target)
    waiting = list(start)
    reached = set(waiting)
    while waiting:
        fresh = [target for target in onward.get(waiting.pop(), ()) if target not in reached]
        reached.update(fresh)
        waiting += fresh
    return frozenset(reached)


def _speed_of_rate(value: object) -> float:
    """Return the seconds per kilobyte of a data rate."""
    rate_kb_per_s = data_rate(value)
    if rate_kb_per_s < _RATE_LEAST_KB_PER_S:
        raise WrongValueError("this is as good as no link", "a rate is at least 1B/d")
    return 1 / rate_kb_per_s


def _link_name(value: object) -> str:
    """Return a link's name without spaces around its arrow."""
    return "->".join(part.strip() for part in any_text(value).split("->"))


def read_world(top: TomlTable, *, title: str, duration_s: float, processing_s: float) -> LayeredWorld:
    """Return the recipe under [generate]; mistakes are noted in the table.

    The default of every number is the one of 000, section 6.1: without deadline and tiers, a deadline of 10
    to 30 seconds.
    """
    table = top.table("generate") or TomlTable({}, "generate", top.mistakes)
    tiers = _tiers(table)
    deadline: NumberDistribution | None = None if "tiers" in table else Uniform(10.0, 30.0)
    per_kb = number_spread(speed, _LINK_SPEED_LEAST_S_PER_KB)
    world = LayeredWorld(
        name=title,
        duration_s=duration_s,
        processing_s=processing_s,
        layers=table.optional("layers", _layers, (4, 4, 8, 16)),
        upstream=table.optional("upstream", count_between(1, BROKERS_MAX), 2),
        subscribers_per_broker=table.optional(
            "subscribers_per_broker", count_between(1, SUBSCRIBERS_MAX), 10
        ),
        link_s_per_kb=table.optional("link_mean", per_kb, Uniform(0.050, 0.100)),
        link_s_per_kb_sd=table.optional("link_deviation", speed, 0.020),
        publisher_rate_per_s=table.optional("rate", positive(frequency), 15 / 60),
        gaps=table.optional("gaps", gaps, "uniform"),
        size_kb=table.optional("size", number_spread(size), Constant(50.0)),
        attributes=table.optional("attributes", _names, ("A1", "A2")),
        attribute_values=table.optional("values", plain_number_spread, Uniform(0.0, 10.0)),
        deadline_s=table.optional("deadline", number_spread(duration), deadline),
        tiers=tiers,
        faults=read_faults(top),
    )
    _check_size(table, world)
    table.close()
    return world


def _tiers(table: TomlTable) -> tuple[Tier, ...]:
    hint_if_none = 'write tiers = [{ max_delay = "10s", price = 3 }]' if "tiers" in table else ""
    return tuple(
        Tier(
            delay_s_max=inner.required("max_delay", positive(duration), 1.0, '"10s"'),
            price=inner.required("price", number_between(0.0, PRICE_MAX), 1.0, "3"),
            weight=inner.optional("weight", positive(number), 1.0),
        )
        for inner in table.tables("tiers", TIERS_MAX, hint_if_none)
    )


def _layers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not 2 <= len(value) <= LAYERS_MAX:
        raise WrongValueError(
            f"a list of 2 to {LAYERS_MAX} layers was expected here", "write layers = [4, 4, 8, 16]"
        )
    read = count_between(1, BROKERS_MAX)
    layers = tuple(read(layer) for layer in value)
    if sum(layers) > BROKERS_MAX:
        raise WrongValueError(f"the layers have {sum(layers):,} brokers, and {BROKERS_MAX:,} are allowed")
    return layers


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= ATTRIBUTES_MAX:
        problem = f"a list of 1 to {ATTRIBUTES_MAX} attribute names was expected here"
        raise WrongValueError(problem, 'write attributes = ["A1", "A2"]')
    names = tuple(name(item) for item in value)
    if len(set(names)) < len(names):
        raise WrongValueError("an attribute is named twice")
    return names


def _check_size(table: TomlTable, world: LayeredWorld) -> None:
    """Note if a recipe asks for more than is allowed, or for neighbours that do not exist."""
    subscribers = world.layers[-1] * world.subscribers_per_broker
    if subscribers > SUBSCRIBERS_MAX:
        problem = f"this makes {subscribers:,} subscribers, and {SUBSCRIBERS_MAX:,} are allowed"
        table.complain("subscribers_per_broker", problem)
    links = world.layers[0] * world.layers[1] + sum(layer * world.upstream for layer in world.layers[2:])
    if links > LINKS_MAX:
        table.complain("layers", f"this makes {links:,} links, and {LINKS_MAX:,} are allowed")
    narrowest = min((above for above, _ in pairwise(world.layers[1:])), default=world.upstream)
    if world.upstream > narrowest:
        problem = f"{world.upstream} neighbours upstream are more than the {narrowest} brokers of a layer"
        table.complain("upstream", problem)


def read_scenario(text: str, source: str, *, is_live: bool = False) -> Scenario | LayeredWorld:
    """Return the world that a scenario file describes; `source` is the file's name in messages.

    What only a simulation needs (a duration, publishers, subscribers) may be missing for a live network.
    """
    mistakes = Mistakes()
    top = TomlTable(_toml(text, source), "", mistakes)
    generated = "generate" in top
    title = top.optional("name", name, "layered" if generated else "scenario")
    if generated or is_live:
        duration_s = top.optional("duration", positive(duration), _PAPER_DURATION_S)
    else:
        duration_s = top.required("duration", positive(duration), _PAPER_DURATION_S, '"10m"')
    processing_s = top.optional("processing", duration, _PAPER_PROCESSING_S)
    world: Scenario | LayeredWorld
    if generated:
        _refuse_both(top)
        world = read_world(top, title=title, duration_s=duration_s, processing_s=processing_s)
    else:
        world = read_network(
            top, title=title, duration_s=duration_s, processing_s=processing_s, needs_people=not is_live
        )
    top.close()
    mistakes.raise_if_any(source)
    return world


def _toml(text: str, source: str) -> Mapping[str, object]:
    """Return the TOML data; an empty file is a mistake."""
    data = read_toml(text, source)
    if not data:
        hint = (
            "write [generate] for the network of the paper, or [[brokers]], [[links]] and so on for your own"
        )
        raise one_mistake(source, "file", "it is empty", hint)
    return data


def _refuse_both(top: TomlTable) -> None:
    """Note brokers and links in a file that also asks for a generated world."""
    for key in _NETWORK_KEYS:
        if key in top:
            top.complain(key, "this does not go with [generate]", "keep one of the two")
            top.ignore(key)


def read_subscriber(text: str, source: str) -> Subscription:
    """Return a subscription; every mistake in the text is listed. Its topic pattern is not checked.

    >>> found = read_subscriber("name = 'ann', broker = 'b1', filter = 'speed > 50', price = 3", "--add")
    >>> found.id, found.home, found.filter.text, found.qos.price
    ('ann', 'b1', 'speed > 50', 3.0)
    """
    mistakes = Mistakes()
    top = TomlTable(read_toml(text, source, before=f"{PLACE} = {{ ", after=" }"), "", mistakes)
    table = top.table(PLACE)
    assert table is not None, "it was written above"
    found = Subscription(
        id=table.required("name", name, "", "'ann'"),
        home=table.required("broker", name, "", "'b1'"),
        filter=table.optional("filter", lambda value: parse_filter(any_text(value)), EVERYTHING),
        qos=read_qos(table),
        pattern=table.optional("topic", any_text, ANY_TOPIC),
    )
    table.close()
    mistakes.raise_if_any(source)
    return found
