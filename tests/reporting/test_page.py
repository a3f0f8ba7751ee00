"""Is a page one file that needs nothing else, in which nothing that people wrote becomes markup?"""

from __future__ import annotations

import re

import pytest
from tests.reporting.browsers import opened_page

from betimes.model.errors import BetimesError
from betimes.reporting.page import ROWS_MAX, PageTable, Section, check_page_place, page_text, write_page
from betimes.reporting.report_plots import draw_network

NASTY = "<script>alert(1)</script>"


def test_what_people_wrote_stays_text():
    table = PageTable(columns=["name", NASTY], rows=[[NASTY, 1.0]], title=NASTY)
    section = Section(key="s", title=NASTY, texts=[NASTY], tables=[table])
    text = page_text(NASTY, NASTY, [(NASTY, NASTY)], [section])
    assert "<script" not in text
    assert text.count("&lt;script&gt;") >= 8


def test_a_page_fetches_nothing():
    text = page_text("t", "a", [], [Section(key="s", title="S", pictures=["<svg></svg>"])])
    assert "<svg></svg>" in text
    assert not re.findall(r'(?:src|href)="(?!#)|@import|url\(', text)
    assert 'href="#s"' in text


def test_numbers_stand_to_the_right_and_claims_have_a_colour():
    table = PageTable(columns=["claim", "n"], rows=[["held", 12345], ["not held", None]], right=["n"])
    text = page_text("t", "a", [], [Section(key="s", title="S", tables=[table])])
    assert '<td class="number">12,345</td>' in text
    assert '<span class="yes">held</span>' in text
    assert '<span class="no">not held</span>' in text


def test_a_long_table_is_cut_and_says_so():
    shown = PageTable(columns=["n"], rows=[[number] for number in range(ROWS_MAX + 5)]).shown()
    assert len(shown.rows) == ROWS_MAX
    assert "5 more rows" in shown.title


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    write_page(tmp_path / "new" / "page.html", "first")
    write_page(tmp_path / "new" / "page.html", "second")
    assert [each.read_text() for each in (tmp_path / "new").iterdir()] == ["second"]
    (tmp_path / "file").write_text("")
    with pytest.raises(BetimesError, match="cannot be written"):
        write_page(tmp_path / "file" / "page.html", "third")


def test_a_place_for_a_page_is_tried_beforehand_and_left_as_it_was(tmp_path):
    check_page_place(tmp_path / "new" / "page.html")
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "page.html"):
        with pytest.raises(BetimesError, match="the page cannot be written"):
            check_page_place(place)


@pytest.mark.live
@pytest.mark.parametrize(("wide", "slides"), [(380, True), (1100, False)])
def test_a_picture_that_is_wider_than_the_screen_slides_and_says_so(tmp_path, wide, slides):
    picture = draw_network(["a", "b"], {("a", "b"): 1.0}, {("a", "b"): 0.9}, {})
    sections = [Section(key="s", title="S", pictures=[picture])]
    write_page(tmp_path / "page.html", page_text("t", "a", [], sections))
    with opened_page(f"file://{tmp_path}/page.html", wide=wide) as (page, wrong):
        assert page.evaluate("document.documentElement.scrollWidth") == wide, "the page itself stays"
        figure = "document.querySelector('figure')"
        assert page.evaluate(f"{figure}.scrollWidth > {figure}.clientWidth") == slides
        said = page.evaluate(f"getComputedStyle({figure}, '::before').content")
        assert ("slide it sideways" in said) == slides
        halo = page.evaluate("getComputedStyle(document.querySelector('svg text')).stroke")
        assert halo == page.evaluate("getComputedStyle(document.body).backgroundColor"), "labels on links"
        assert wrong == []
