"""Do the commands in the tutorial work, in the order in which they stand there?"""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.examples.chapters import ROOT, blocks, run_page

CHAPTERS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.mark.live
@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_every_command_of_a_chapter_ends_as_it_should(chapter, tmp_path):
    run_page(chapter, tmp_path)


def test_every_chapter_has_commands_and_they_are_betimes_own_or_others_that_are_there():
    for chapter in CHAPTERS:
        found = [line for block in blocks(chapter) for line in block.text.splitlines() if line.strip()]
        assert len(found) > 2, chapter.name


def test_chapters_are_numbered_one_after_the_other_and_lead_on():
    assert [int(chapter.name[:2]) for chapter in CHAPTERS] == list(range(1, len(CHAPTERS) + 1))
    for chapter, following in pairwise(CHAPTERS):
        assert f"({following.name})" in chapter.read_text(), chapter.name
