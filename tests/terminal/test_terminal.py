"""Do results go to standard output and everything else to standard error?"""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from betimes.terminal.terminal import (
    cell_text,
    notices,
    print_error,
    print_facts,
    print_json,
    print_next,
    print_notice,
    print_table,
    pure,
    results,
    spread_text,
    typed,
)


def test_results_and_notices_are_kept_apart(capsys):
    results().print("a result")
    notices().print("a notice")
    print_error("wrong [red]thing[/red]")
    print_notice("by the way")
    said = capsys.readouterr()
    assert said.out == "a result\n"
    assert said.err == "a notice\nerror: wrong [red]thing[/red]\nby the way\n"


def test_json_is_pure_even_with_infinite_bounds(capsys):
    print_json({"bound": float("inf"), "share": float("nan"), "names": {"b", "a"}, "pairs": ((1, 2),)})
    assert json.loads(capsys.readouterr().out) == {
        "bound": None,
        "share": None,
        "names": ["a", "b"],
        "pairs": [[1, 2]],
    }


def test_a_table_shows_every_cell_as_it_is(capsys):
    print_table("shares", ["name", "share"], [("[x]", 0.5), ("b", None)], numbers=["share"])
    print_facts("facts", {"cores": 2, "markup": "[bold]"})
    said = capsys.readouterr().out
    for text in ("shares", "[x]", "0.5", "-", "cores", "[bold]"):
        assert text in said


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (False, "no"), (12345, "12,345"), (0.00012, "0.00012"), (2e6, "2,000,000")],
)
def test_a_cell_reads_as_a_person_would_write_it(value, text):
    assert cell_text(value) == text


def test_what_json_can_say_is_left_alone():
    assert pure([1, "a", None, True, {"x": 2.5}]) == [1, "a", None, True, {"x": 2.5}]


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (0.43201, 0.008741, "0.4320 ± 0.0087"),
        (18961.4, 674.8, "18,961 ± 675"),
        (3.0, 0.0, "3 ± 0"),
        (3.0, None, "3"),
    ],
)
def test_a_mean_has_no_more_digits_than_its_spread_bears(mean, sd, text):
    assert spread_text(mean, sd) == text


def test_the_name_of_a_row_is_never_squeezed_away(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    numbers = [str(number) for number in range(9)]
    print_table("wide", ["curve", *numbers], [["late-binding", *["0.123 ± 0.001"] * 9]], numbers=numbers)
    assert "late-binding" in capsys.readouterr().out


def test_a_title_is_not_broken_to_the_width_of_its_table(capsys):
    title = "examples/guarantees.toml, strategy late-binding, seed 1"
    print_facts(title, {"a": 1})
    print_table(title, ["a"], [["1"]])
    assert capsys.readouterr().out.splitlines().count(title) == 2


def test_a_command_is_shown_with_its_path_where_the_shell_would_not_find_it(monkeypatch):
    monkeypatch.setattr(sys, "argv", [".venv/bin/betimes", "demo"])
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert typed("betimes figures") == ".venv/bin/betimes figures"
    monkeypatch.setattr(shutil, "which", lambda name: "here")
    assert typed("betimes figures") == "betimes figures"


def test_each_command_stands_on_a_line_with_what_it_is_about(capsys):
    print_next({"betimes a": "first", "betimes longer [b]": "second"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "what to try next:"
    assert [line.split()[-1] for line in lines[2:]] == ["first", "second"]
    assert lines[2].index("first") == lines[3].index("second")
    assert "[b]" in lines[3]
