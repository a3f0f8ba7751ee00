"""A subscriber in one line of text, with the keys of a scenario file."""

from __future__ import annotations

from betimes.language.files.scenario_network import read_qos
from betimes.language.files.table_reader import Mistakes, TomlTable, any_text, name
from betimes.language.files.toml import read_toml
from betimes.language.filters.parse import parse_filter
from betimes.model.filters import EVERYTHING
from betimes.model.subscriptions import ANY_TOPIC, Subscription

PLACE = "subscriber"


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
