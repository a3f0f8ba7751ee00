"""Does `betimes report` write a page from tables, and say what is wrong where it cannot?"""

from __future__ import annotations

import json

import pytest
from tests.pipeline.report_tables import make_empty_tables, make_tables

from betimes.cli.app import run
from betimes.reporting.report_sections import FIRST_COME


@pytest.mark.long
def test_a_page_is_written_and_its_numbers_are_the_tables_own(tmp_path, capsys):
    page = tmp_path / "deep" / "report.html"
    tables = make_tables(tmp_path / "tables")
    assert run(["report", "--tables", str(tables), "--out", str(page), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["wanted"], facts["on_time"], facts["on_time_share"]) == (20.0, 14.0, 0.7)
    assert (facts["earning"], facts["offered"], facts["dropped"]) == (24.0, 40.0, 5.0)
    text = page.read_text()
    assert facts["bytes"] == page.stat().st_size
    assert "<b>70.0%</b>on-time share" in text
    assert "<b>60.0%</b>earned" in text
    assert "<script" not in text, "a subscriber's name stays a name"
    assert text.count("<svg") == 8
    assert facts["predictions"] == FIRST_COME
    assert "mean error of predictions, assuming first come, first served" in text


def test_a_person_is_told_where_the_page_is(tmp_path, capsys):
    page = tmp_path / "report.html"
    assert run(["report", "--tables", str(make_empty_tables(tmp_path / "t")), "--out", str(page)]) == 0
    said = "".join(capsys.readouterr().out.split())
    assert str(page) in said
    assert "firstcome" not in said, "nothing was predicted"
    assert page.read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--tables", "no/such/place"], "no/such/place: there are no tables"),
        (["--tables", "TABLES", "--model", "guess"], "no such model"),
        (["--tables", "TABLES", "--out", "FILE/page.html"], "cannot be written"),
        ([], "--tables"),
    ],
)
def test_a_mistake_gets_one_message(tmp_path, capsys, arguments, said):
    (tmp_path / "FILE").write_text("")
    make_empty_tables(tmp_path / "TABLES")
    here = [
        each.replace("TABLES", str(tmp_path / "TABLES")).replace("FILE", str(tmp_path / "FILE"))
        for each in arguments
    ]
    assert run(["report", *here]) == 2
    assert said in capsys.readouterr().err


def test_a_place_where_no_page_can_be_is_told_before_anything_is_read(tmp_path, capsys):
    assert run(["report", "--tables", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "the page cannot be written" in capsys.readouterr().err
