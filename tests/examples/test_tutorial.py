"""Do the commands in the tutorial work, in the order in which they stand there?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from betimes.console.app import MISTAKE, run

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))
BLOCK = re.compile(r"^```sh( fails)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(chapter: Path) -> list[tuple[list[str], int]]:
    """Return the command lines of a chapter, each with the exit code it should have."""
    return [
        (shlex.split(line), MISTAKE if fails else 0)
        for fails, block in BLOCK.findall(chapter.read_text())
        for line in block.splitlines()
    ]


@pytest.mark.figure
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_command_of_a_chapter_ends_as_it_should(chapter, tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for words, code in commands(chapter):
        assert words[0] == "betimes"
        if words[1] == "figure":
            continue  # tests/console/test_figure.py runs one
        assert run(words[1:]) == code, words
        assert "Traceback" not in capsys.readouterr().err


def test_every_chapter_has_commands():
    assert all(len(commands(chapter)) > 3 for chapter in CHAPTERS)
