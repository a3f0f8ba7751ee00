"""Is what is written of an overlay read, and every mistake told?"""

from __future__ import annotations

import pytest

from betimes.language.files.overlay_file import (
    read_attribute_range,
    read_delay,
    read_overlay_file,
    read_share,
)
from betimes.model.errors import FileMistakesError, TextError
from betimes.model.overlay_settings import AttributeRange, Metric


def test_a_range_has_a_name_and_two_numbers():
    assert read_attribute_range("a:b:-1.5..2e3") == AttributeRange(attribute="a:b", low=-1.5, high=2000.0)
    assert read_attribute_range("x:.5..1").low == 0.5


@pytest.mark.parametrize("text", ["x", "x:1", ":0..1", "x:1..1", "x:2..1", "x:a..b", "x:0..inf", "x:nan..1"])
def test_what_is_no_range_is_told(text):
    with pytest.raises(TextError):
        read_attribute_range(text)


def test_a_delay_is_hops_or_a_time():
    assert read_delay("4 hops") == (4.0, Metric.HOPS)
    assert read_delay("1hop") == (1.0, Metric.HOPS)
    assert read_delay("1.5s") == (1.5, Metric.TIME)
    for wrong in ("0", "65", "0ms", "-1s", "soon"):
        with pytest.raises(TextError):
            read_delay(wrong)


@pytest.mark.parametrize("text", ["10", "101%", "-1%", "x%", "5%%", "nan%"])
def test_what_is_no_share_is_told(text):
    with pytest.raises(TextError):
        read_share(text)


def test_a_file_says_what_all_share():
    text = """
    attributes = ["temperature:0..100", "wind:0..40"]
    levels = 8
    metric = "time"
    join = ["192.0.2.7:4001"]
    secret_file = "overlay.secret"
    """
    settings = read_overlay_file(text, "overlay.toml")
    assert [each.attribute for each in settings.ranges] == ["temperature", "wind"]
    assert (settings.levels, settings.metric) == (8, Metric.TIME)
    assert settings.join == ("192.0.2.7:4001",)
    assert settings.secret_file == "overlay.secret"


def test_every_mistake_of_a_file_is_told_at_once():
    text = 'attributes = ["x:1"]\nlevels = 0\nmetric = "miles"\njoin = []\nplaces = 3'
    with pytest.raises(FileMistakesError) as caught:
        read_overlay_file(text, "overlay.toml")
    said = str(caught.value)
    assert "5 mistakes" in said
    for name in ("attributes", "levels", "metric", "join", "places"):
        assert name in said
