"""Are command lines told from such as Betimes would not take?"""

from __future__ import annotations

import pytest
from tests.examples.typed import betimes_words, logical_lines, named_files, parsed, unknown_words


def test_lines_go_on_after_a_backslash_and_comments_are_left_out():
    text = "betimes figures   # all of them\n\n# a remark\nbetimes sub -t 'a/#' \\\n    -C 1\n"
    assert logical_lines(text) == ["betimes figures", "betimes sub -t 'a/#' -C 1"]


def test_a_command_may_stand_behind_a_pipe():
    found = betimes_words("while sleep 1; do echo x; done | betimes pub -t a -l")
    assert list(found) == [["pub", "-t", "a", "-l"]]


def test_a_right_line_is_read_and_its_files_are_known():
    command, values = parsed(["pipeline", "run", "--telemetry", "out/x", "--tables", "out/t"])
    assert command == "pipeline run"
    assert dict(named_files(values)) == {"telemetry": "out/x", "tables": "out/t"}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["simulat", "x.toml"],
        ["simulate"],
        ["simulate", "x.toml", "--sead", "3"],
        ["simulate", "x.toml", "--seed", "three"],
        ["pipeline"],
    ],
)
def test_a_wrong_line_is_refused(words):
    with pytest.raises(ValueError, match=r"."):
        parsed(words)


def test_a_fragment_is_held_against_the_options_that_there_are():
    assert unknown_words(["pipeline", "run", "--since", "…"]) == []
    assert unknown_words(["pipeline", "walk"]) == ["walk"]
    assert unknown_words(["sub", "--also", "URL", "--nonsense"]) == ["--nonsense"]
