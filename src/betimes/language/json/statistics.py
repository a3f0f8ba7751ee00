"""The statistics of a network as JSON, which programs exchange.

The JSON has a bounded size and a version. Invalid text is rejected with all its mistakes, each with its
place, so that a broker never uses half a model. A missing key has its default; bounds that are not stated
are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NoReturn

from betimes.language.files.table_reader import (
    PRICE_MAX,
    Mistakes,
    TomlTable,
    WrongValueError,
    any_text,
    count_between,
    described,
    number,
    number_between,
)
from betimes.language.filters.parse import parse_filter
from betimes.language.suggestions import did_you_mean
from betimes.model.distributions import (
    Choice,
    Constant,
    Distribution,
    Exponential,
    Gamma,
    Histogram,
    Normal,
    NumberDistribution,
    Uniform,
)
from betimes.model.errors import BetimesError, FileMistakesError, Mistake
from betimes.model.events import Value
from betimes.model.filters import EVERYTHING
from betimes.model.statistics import (
    BrokerStatistics,
    ContentSample,
    LinkStatistics,
    NetworkStatistics,
    PublisherStatistics,
    WaitStatistics,
)
from betimes.model.subscriptions import ANY_TOPIC, QoS, Subscription

CELLS_MAX = 10_000
NOT_NEGATIVE = number_between(0.0, math.inf)
ZERO = Constant(0.0)

KINDS: dict[type[Distribution], str] = {
    Constant: "constant",
    Uniform: "uniform",
    Normal: "normal",
    Exponential: "exponential",
    Gamma: "gamma",
    Histogram: "histogram",
    Choice: "choice",
}
VERSION = 1
BYTES_MAX = 64_000_000
BROKERS_MAX = 10_000
LINKS_MAX = 100_000
PUBLISHERS_MAX = 100_000
SAMPLE_MAX = 10_000  # of one publisher
SUBSCRIPTIONS_MAX = 1_000_000
WAITS_MAX = 1_000_000
ATTRIBUTES_MAX = 1_000
SECONDS_MAX = 1e12
SHARE = number_between(0.0, 1.0)
SECONDS = number_between(0.0, SECONDS_MAX)
ONE = Constant(1.0)


def spread_data(spread: Distribution) -> dict[str, Any]:
    """Return a distribution as JSON data."""
    data: dict[str, Any] = {"kind": KINDS[type(spread)]}
    match spread:
        case Constant(value):
            data |= {"value": value}
        case Uniform(low, high):
            data |= {"low": low, "high": high}
        case Normal(mean, sd, low):
            data |= {"mean": mean, "sd": sd} | ({} if low == -math.inf else {"low": low})
        case Exponential(mean):
            data |= {"mean": mean}
        case Gamma(mean, shape, least):
            data |= {"mean": mean, "shape": shape, "least": least}
        case Histogram(start, width, weights):
            data |= {"start": start, "width": width, "weights": list(weights)}
        case Choice(values, weights):
            data |= {"values": list(values), "weights": list(weights)}
    return data


def read_spread(table: TomlTable, key: str, otherwise: NumberDistribution) -> NumberDistribution:
    """Return the distribution of numbers under a key."""
    found = any_spread(table, key) if key in table else otherwise
    if isinstance(found, Choice):
        table.complain(key, "a distribution of numbers was expected here, not a choice")
        return otherwise
    return found


def any_spread(table: TomlTable, key: str) -> Distribution:
    """Return the distribution under a key."""
    data = table.table(key)
    if data is None:
        return ZERO
    kind = data.required("kind", any_text, "", '"normal"')
    read = SPREADS.get(kind)
    if read is None:
        data.complain("kind", f"{kind!r} is not possible here", did_you_mean(kind, SPREADS, "kinds"))
        return ZERO
    spread = read(data)
    data.close()
    return spread


def _uniform(table: TomlTable) -> Uniform:
    low = table.required("low", number, 0.0, "0.0")
    high = table.required("high", number, low, "1.0")
    if high < low:
        table.complain("high", f"{high:g} is below low, which is {low:g}")
    return Uniform(low, high)


def _normal(table: TomlTable) -> Normal:
    mean = table.required("mean", number, 0.0, "0.1")
    sd = table.required("sd", NOT_NEGATIVE, 0.0, "0.02")
    return Normal(mean, sd, table.optional("low", number, -math.inf))


def _gamma(table: TomlTable) -> Gamma:
    shape = table.required("shape", number_between(1e-12, math.inf), 1.0, "2.0")
    least = table.optional("least", NOT_NEGATIVE, 0.0)
    mean = table.required("mean", number_between(least, math.inf), least, "0.1")
    return Gamma(mean, shape, least)


def _histogram(table: TomlTable) -> Histogram:
    weights = table.required("weights", _weights, (1.0,), "[1, 2, 1]")
    if not sum(weights) > 0.0:
        table.complain("weights", "at least one of them must be more than zero")
    width = table.required("width", number_between(1e-300, math.inf), 1.0, "0.001")
    return Histogram(table.required("start", number, 0.0, "0.0"), width, weights)


def _choice(table: TomlTable) -> Choice:
    values = table.required("values", lambda value: tuple(map(plain_value, _list(value))), (0.0,), "[1, 2]")
    weights = table.optional("weights", _weights, ())
    if weights and len(weights) != len(values):
        table.complain("weights", f"there are {len(weights)} for {len(values)} values")
    return Choice(values, weights)


def _weights(value: object) -> tuple[float, ...]:
    return tuple(map(NOT_NEGATIVE, _list(value)))


def _list(value: object) -> list[object]:
    if not isinstance(value, list):
        raise WrongValueError(f"a list was expected here, not {described(value)}")
    if len(value) > CELLS_MAX:
        raise WrongValueError(f"there are {len(value):,} of them, and {CELLS_MAX:,} are allowed")
    return value


def plain_value(value: object) -> Value:
    """Return a number, a text or a flag."""
    if isinstance(value, bool | str):
        return value
    return number(value)


SPREADS: dict[str, Callable[[TomlTable], Distribution]] = {
    "constant": lambda table: Constant(table.required("value", number, 0.0, "1.0")),
    "uniform": _uniform,
    "normal": _normal,
    "exponential": lambda table: Exponential(table.required("mean", NOT_NEGATIVE, 0.0, "1.0")),
    "gamma": _gamma,
    "histogram": _histogram,
    "choice": _choice,
}


class StatisticsTooLargeError(BetimesError):
    """Statistics that exceed the size limit: their size, and the limit."""


def statistics_text(statistics: NetworkStatistics) -> str:
    """Return statistics as JSON; `read_statistics` reads it again."""
    data: dict[str, Any] = {
        "version": VERSION,
        "learned_at_s": statistics.learned_at_s,
        "over_s": statistics.over_s,
        "brokers": [_data(each) for each in statistics.brokers],
        "links": [_data(each) for each in statistics.links],
        "publishers": [_data(each) for each in statistics.publishers],
        "subscriptions": [_subscription_data(each) for each in statistics.subscriptions],
        "waits": [_data(each) for each in statistics.waits],
    }
    text = json.dumps(_stated(data), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    _check_size(text, "the statistics")
    return text


def _check_size(text: str, source: str) -> None:
    size_bytes = len(text.encode(errors="surrogatepass"))
    if size_bytes > BYTES_MAX:
        raise StatisticsTooLargeError(
            f"{source}: {size_bytes:,} bytes, and at most {BYTES_MAX:,} are allowed\n"
            "hint: learn from smaller samples, or of fewer subscriptions"
        )


def _stated(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data without empty values and infinite bounds."""
    return {key: value for key, value in data.items() if value is not None and value != math.inf}


def _data(record: Any) -> dict[str, Any]:
    """Return the fields of a record that are stated."""
    return _stated({each.name: _plain(getattr(record, each.name)) for each in fields(record)})


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_data(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in _plain_attributes(value).items()}
    return spread_data(value) if type(value) in KINDS else value


def _plain_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that have a value; NaN and infinities are no numbers either way."""
    return {
        name: value
        for name, value in attributes.items()
        if value is not None and not (isinstance(value, float) and not math.isfinite(value))
    }


def _subscription_data(subscription: Subscription) -> dict[str, Any]:
    qos = subscription.qos
    return _stated(
        {
            "id": subscription.id,
            "home": subscription.home,
            "pattern": subscription.pattern,
            "filter": subscription.filter.text,
            "delay_s_max": qos.delay_s_max,
            "price": qos.price,
            "reliability": qos.reliability,
            "subscribers": subscription.subscribers,
        }
    )


def read_statistics(text: str, source: str) -> NetworkStatistics:
    """Return the statistics in a text; a FileMistakesError lists its mistakes."""
    _check_size(text, source)
    try:
        data = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        problem = f"this is not JSON ({error})"
        raise FileMistakesError(source, (Mistake(place="the text", problem=problem),)) from None
    mistakes = Mistakes()
    if not isinstance(data, dict):
        mistakes.add("the text", f"a table was expected here, not {described(data)}")
        mistakes.raise_if_any(source)
    root = TomlTable(data, "", mistakes)
    version = root.required("version", count_between(0, 10**9), 0, str(VERSION))
    if version != VERSION:
        root.complain(
            "version", f"{version} is not known here: it must be {VERSION}", "use one version of Betimes"
        )
        mistakes.raise_if_any(source)
    statistics = NetworkStatistics(
        brokers=tuple(map(_broker, root.tables("brokers", BROKERS_MAX))),
        links=tuple(map(_link, root.tables("links", LINKS_MAX))),
        publishers=tuple(map(_publisher, root.tables("publishers", PUBLISHERS_MAX))),
        subscriptions=tuple(map(_subscription, root.tables("subscriptions", SUBSCRIPTIONS_MAX))),
        waits=tuple(map(_wait, root.tables("waits", WAITS_MAX))),
        learned_at_s=root.optional("learned_at_s", SECONDS, None),
        over_s=root.optional("over_s", SECONDS, 0.0),
    )
    root.close()
    _check_ids(statistics, mistakes)
    mistakes.raise_if_any(source)
    return statistics


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _check_ids(statistics: NetworkStatistics, mistakes: Mistakes) -> None:
    seen: set[str] = set()
    for place, subscription in enumerate(statistics.subscriptions):
        if subscription.id in seen:
            mistakes.add(f"subscriptions[{place}].id", f"{subscription.id!r} is there already")
        seen.add(subscription.id)


def _broker(table: TomlTable) -> BrokerStatistics:
    return BrokerStatistics(
        name=table.required("name", any_text, "", '"a"'),
        processing_s=read_spread(table, "processing_s", ZERO),
        processing_s_per_subscription=table.optional("processing_s_per_subscription", SECONDS, 0.0),
    )


def _link(table: TomlTable) -> LinkStatistics:
    return LinkStatistics(
        source=table.required("source", any_text, "", '"a"'),
        target=table.required("target", any_text, "", '"b"'),
        reliability=table.optional("reliability", SHARE, 1.0),
        delay_s=read_spread(table, "delay_s", ZERO),
        s_per_kb=read_spread(table, "s_per_kb", ZERO) if "s_per_kb" in table else None,
    )


def _publisher(table: TomlTable) -> PublisherStatistics:
    attributes = table.table("attributes")
    return PublisherStatistics(
        name=table.required("name", any_text, "", '"p"'),
        broker=table.required("broker", any_text, "", '"a"'),
        rate_per_s=table.required("rate_per_s", NOT_NEGATIVE, 0.0, "1.0"),
        gaps_scv=table.optional("gaps_scv", NOT_NEGATIVE, 1.0),
        size_kb=read_spread(table, "size_kb", ONE),
        topic=table.optional("topic", any_text, ""),
        attributes={} if attributes is None else {name: any_spread(attributes, name) for name in attributes},
        deadline_s=read_spread(table, "deadline_s", ZERO) if "deadline_s" in table else None,
        sample=tuple(map(_sample, table.tables("sample", SAMPLE_MAX))),
    )


def _sample(table: TomlTable) -> ContentSample:
    return ContentSample(
        topic=table.optional("topic", any_text, ""),
        attributes=table.optional("attributes", _attributes, {}),
        deadline_s=table.optional("deadline_s", SECONDS, math.inf),
        weight=table.optional("weight", NOT_NEGATIVE, 1.0),
    )


def _attributes(value: object) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise WrongValueError(f"a table was expected here, not {described(value)}")
    if len(value) > ATTRIBUTES_MAX:
        raise WrongValueError(f"there are {len(value):,} attributes, and {ATTRIBUTES_MAX:,} are allowed")
    return {name: plain_value(each) for name, each in value.items()}


def _subscription(table: TomlTable) -> Subscription:
    reliability = table.optional("reliability", SHARE, None)
    return Subscription(
        id=table.required("id", any_text, "", '"s"'),
        home=table.required("home", any_text, "", '"b"'),
        pattern=table.optional("pattern", any_text, ANY_TOPIC),
        filter=table.optional("filter", lambda value: parse_filter(any_text(value)), EVERYTHING),
        qos=QoS(
            delay_s_max=table.optional("delay_s_max", SECONDS, math.inf),
            price=table.optional("price", number_between(0.0, PRICE_MAX), 1.0),
            reliability=reliability,
        ),
        subscribers=table.optional("subscribers", count_between(1, 10**9), 1),
    )


def _wait(table: TomlTable) -> WaitStatistics:
    return WaitStatistics(
        publisher=table.required("publisher", any_text, "", '"p"'),
        station=table.required("station", any_text, "", '"a->b"'),
        count=table.required("count", NOT_NEGATIVE, 0.0, "100"),
        waited_share=table.required("waited_share", SHARE, 0.0, "0.5"),
        mean_s=table.required("mean_s", SECONDS, 0.0, "0.1"),
        variance=table.required("variance", NOT_NEGATIVE, 0.0, "0.01"),
    )
