"""Are the pages of the reference those that the code makes?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.cli.app import run
from betimes.reporting.reference import PAGES
from betimes.terminal.exit_codes import MISTAKE

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("page", PAGES)
def test_a_page_of_the_documents_is_up_to_date(page, capsys):
    assert run(["reference", page]) == 0
    shown = capsys.readouterr().out
    assert (REFERENCE / f"{page}.md").read_text() == shown, (
        f"betimes reference {page} > docs/reference/{page}.md"
    )


def test_a_page_that_is_not_there_is_a_mistake_with_a_hint(capsys):
    assert run(["reference", "colours"]) == MISTAKE
    assert "commands, configuration" in capsys.readouterr().err
