"""Do the examples still print what they are said to print?"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted(Path("examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_prints_what_stands_beside_it(example, capsys):
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out == example.with_suffix(".txt").read_text()


def test_there_are_examples_to_run():
    assert EXAMPLES
