"""Are the pages of the reference those that the code makes?"""

from __future__ import annotations

from pathlib import Path

import pytest

from betimes.cli.app import command_names, commands, run
from betimes.cli.reference import PAGES, commands_page, metrics_page
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


def test_every_command_is_on_the_page():
    page = commands_page(commands())
    for name in command_names():
        assert f"## betimes {name}" in page


def test_metrics_are_told_with_their_labels():
    page = metrics_page()
    assert "| `betimes_lost_total` | counter | `reason` |" in page
    assert "| `betimes_link_sent_bytes_total` | counter | `neighbour` |" in page
