"""Does `betimes twin` say what would come of a change, and what is wrong with a question?"""

from __future__ import annotations

import json

import pytest
from tests.pipeline.report_tables import NASTY, make_empty_tables, make_tables

from betimes.cli.app import run
from betimes.cli.twin import read_question, times
from betimes.pipeline.twin.what_if import CANDIDATES, TwinQuestion
from betimes.terminal.exit_codes import MISTAKE

ANN = "name = 'ann', broker = 'a', filter = 'x > 0', max_delay = '2s', price = 3"


@pytest.fixture
def tables(tmp_path):
    return str(make_tables(tmp_path))


def answer(capsys, *arguments: str):
    assert run(["twin", "--json", *arguments]) == 0
    return json.loads(capsys.readouterr().out)


def test_without_a_change_the_twin_is_held_against_what_was_measured(tables, capsys):
    facts = answer(capsys, "--tables", tables, "--seeds", "2")
    assert facts["after"] is None
    assert facts["before"]["on_time_share"]["mean"] == pytest.approx(1.0)
    shares = {each["subscriber"]: each for each in facts["subscribers"]}
    assert shares["s at b"]["measured"] == 0.8
    assert shares["s at b"]["before"]["mean"] == 1.0
    assert facts["off_mean"] == pytest.approx((0.2 + 0.4) / 2)
    assert facts["off_max"] == pytest.approx(0.4)
    assert facts["fits"] == {name: pytest.approx(0.3) for name in CANDIDATES}, "nothing waits in this one"
    assert facts["current_strategy"] == CANDIDATES[0], "of those that fit alike, what brokers do unless told"


def test_changes_are_played_and_what_is_assumed_is_said(tables, capsys):
    facts = answer(
        capsys, "--tables", tables, "--rate", "x40", "--add-subscriber", ANN, "--strategy", "fifo",
        "--current", "eb", "--seeds", "2",
    )  # fmt: skip
    shares = {each["subscriber"]: each for each in facts["subscribers"]}
    assert facts["current_strategy"] == "eb"
    assert facts["fits"] == {}, "nobody has to guess"
    assert shares["ann"]["before"] is None
    assert shares["ann"]["after"]["mean"] == 1.0, "she is where it is published"
    assert facts["assumed_links"] == ["b->a", "c->b"]
    assert facts["after"]["earning"]["mean"] > facts["before"]["earning"]["mean"]


def test_a_link_that_is_dropped_cuts_off_who_is_behind_it(tables, capsys):
    facts = answer(capsys, "--tables", tables, "--drop-link", "b->c", "--seeds", "1")
    shares = {each["subscriber"]: each["after"]["mean"] for each in facts["subscribers"]}
    assert shares["s at b"] == 1.0
    assert shares[f"{NASTY} at c"] == 0.0


def test_a_person_sees_before_and_after(tables, capsys):
    assert run(["twin", "--tables", tables, "--rate", "2", "--seeds", "1"]) == 0
    shown = capsys.readouterr()
    for text in ("before", "after", "measured", "error of the twin"):
        assert text in shown.out
    words = " ".join(shown.out.split())  # however wide the terminal is
    assert "late-binding, the best fit: a guess" in words
    assert "late-binding 0.300, look-ahead 0.300, eb 0.300, fifo 0.300" in words
    assert "this error is large" in shown.err, "0.3 on average"


@pytest.mark.long
def test_what_brokers_chose_by_is_no_guess_where_it_is_named(tables, capsys):
    assert run(["twin", "--tables", tables, "--current", "eb", "--seeds", "1"]) == 0
    shown = capsys.readouterr().out
    assert "eb, from --current" in shown
    assert "guess" not in shown


@pytest.mark.long
def test_who_got_little_is_neither_listed_nor_counted(tmp_path, capsys):
    tables = str(make_tables(tmp_path, wanted={NASTY: 40.0}))
    assert run(["twin", "--tables", tables, "--seeds", "1"]) == 0
    shown = capsys.readouterr()
    assert "s at b" not in shown.out
    assert "0.400 on average, 0.400 at most" in shown.out
    assert "1 subscriber with fewer than 30 messages" in shown.err
    facts = answer(capsys, "--tables", tables, "--seeds", "1")
    assert {each["subscriber"]: each["wanted"] for each in facts["subscribers"]}["s at b"] == 10.0


@pytest.mark.long
def test_one_run_has_no_spread(tables, capsys):
    assert run(["twin", "--tables", tables, "--seeds", "1"]) == 0
    assert "±" not in capsys.readouterr().out
    assert answer(capsys, "--tables", tables, "--seeds", "1")["before"]["earning"]["sd"] is None


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rate", "fast"], "is not a factor"),
        (["--rate", "x0"], "must be between"),
        (["--rate", "nan"], "must be between"),
        (["--drop-link", "a->z"], "no such link"),
        (["--add-subscriber", "name = 'ann'"], "broker: this is missing"),
        (
            ["--add-subscriber", "name = 'ann', broker = 'z'"],
            "--add-subscriber: broker = 'z': no such broker",
        ),
        (["--add-subscriber", "name = 'ann', broker = 'a', topic = 'a#'"], "topic = 'a#': # must be alone"),
        (["--add-subscriber", "garbage"], "line 1, column 8: this is not TOML"),
        (["--strategy", "best"], "no such strategy"),
        (["--current", "best"], "--current"),
        (["--seeds", "0"], "--seeds"),
    ],
)
def test_a_mistake_gets_one_message(tables, capsys, arguments, said):
    assert run(["twin", "--tables", tables, *arguments]) == MISTAKE
    assert said in capsys.readouterr().err


def test_tables_with_nothing_in_them_are_refused(tmp_path, capsys):
    assert run(["twin", "--tables", str(make_empty_tables(tmp_path))]) == MISTAKE
    assert "no events, or no subscriptions" in capsys.readouterr().err


def test_a_question_says_whether_anything_changes():
    assert not read_question(None, (), (), None).is_change
    assert read_question("x2", (), (), None) == TwinQuestion(times_faster=2.0)
    assert read_question(None, (), (), "fifo").is_change
    assert times(" x0.5 ") == 0.5
