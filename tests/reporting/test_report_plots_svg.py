"""Is a picture one that its page can colour, that says what it shows, and that is always the same?"""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from betimes.reporting.report_plots import INK, draw_svg, draw_svgs

pytestmark = pytest.mark.long


def bars(axes):
    axes.barh(["$a$ <b>", "c"], [1.0, 2.0])
    axes.set_title("a title")


def test_a_picture_is_well_formed_and_says_what_it_shows():
    text = draw_svg(2.0, bars, 'bars of "a" & <b>')
    root = ET.fromstring(text)
    assert root.tag.endswith("svg")
    assert root.attrib["aria-label"] == 'bars of "a" & <b>'
    assert "width" not in root.attrib, "it grows with the page"


def test_text_is_in_the_page_s_own_colour_and_stays_text():
    text = draw_svg(2.0, bars, "bars")
    assert "currentColor" in text
    assert INK not in text
    assert "a title" in text
    assert "$a$ &lt;b&gt;" in text, "a dollar begins no formula, and a name is no markup"


def test_the_same_picture_is_the_same_text_and_ids_differ_between_pictures():
    assert draw_svg(2.0, bars, "one") == draw_svg(2.0, bars, "one")

    def ids(text):
        return {each.attrib["id"] for each in ET.fromstring(text).iter() if "id" in each.attrib}

    one, other = ids(draw_svg(2.0, bars, "one")), ids(draw_svg(2.0, bars, "other"))
    assert one
    assert not one & other


def test_several_pictures_are_one():
    text = draw_svgs(3.0, [bars, bars, bars], "three", across=2)
    assert text.count("a title") == 3
