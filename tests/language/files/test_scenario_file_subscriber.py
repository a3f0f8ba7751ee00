"""Is a subscriber in one line read as in a scenario file, and every mistake in it listed?"""

from __future__ import annotations

import math

import pytest

from betimes.language.files.scenario_file import read_subscriber
from betimes.model.errors import FileMistakesError


def test_all_keys_are_read():
    found = read_subscriber(
        "name = 'ann', broker = 'b1', filter = \"kind = 'car'\", max_delay = '2s', price = 3, topic = 'a/#'",
        "-",
    )
    assert (found.id, found.home, found.pattern) == ("ann", "b1", "a/#")
    assert (found.filter.text, found.qos.delay_s_max, found.qos.price) == ("kind = 'car'", 2.0, 3.0)


def test_a_name_and_a_broker_are_enough():
    found = read_subscriber("name = 'ann', broker = 'b1'", "-")
    assert (found.filter.text, found.pattern, found.qos.delay_s_max) == ("TRUE", "#", math.inf)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name = 'ann'", "subscriber.broker: this is missing"),
        ("name = 'ann', broker = 'b1', delay = '2s'", "delay"),
        ("name = 'ann', broker = 'b1', price = -1", "price"),
        ("name = 'ann', broker = 'b1', filter = 'x >'", "filter"),
        ("name = 'ann', broker = 'b1', topic = 3", "a text was expected"),
        ("name = ann", "line 1, column 8: this is not TOML"),
        ("garbage", "line 1, column 8: this is not TOML"),
        ("} more = {", "not TOML"),
    ],
)
def test_a_mistake_is_named(text, said):
    with pytest.raises(FileMistakesError, match=said):
        read_subscriber(text, "--add-subscriber")


def test_all_mistakes_are_listed_at_once():
    with pytest.raises(FileMistakesError) as raised:
        read_subscriber("price = 'much', max_delay = 'soon'", "--add-subscriber")
    assert len(raised.value.mistakes) == 4
