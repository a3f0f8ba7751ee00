"""Is a page one file that needs nothing else, in which nothing that people wrote becomes markup?"""

from __future__ import annotations

import re

import pytest

from betimes.console.page import ROWS_MAX, PageTable, Section, check_page_place, page_text, write_page
from betimes.model.errors import BetimesError

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
