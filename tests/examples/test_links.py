"""Does every link of every page lead somewhere, also to the right heading?"""

from __future__ import annotations

import pytest
from tests.examples.chapters import ROOT
from tests.examples.links import anchors, broken, links

PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    ROOT / "changelog.d" / "README.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_what_is_there(page):
    assert broken(page) == []


def test_anchors_are_as_github_makes_them():
    text = "# A twin: what if?\n## `betimes sub`\n## Twice\n## Twice\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"a-twin-what-if", "betimes-sub", "twice", "twice-1"}


def test_code_and_what_is_elsewhere_are_no_links_of_ours():
    assert links("[a](b.md) `[c](d.md)` [e](https://f.example) ![g](h.png)") == ["b.md", "h.png"]


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](there.md#here) [b](there.md#gone) [c](gone.md) [d](#one) [e](#two)\n")
    assert broken(page) == ["there.md#gone", "gone.md", "#two"]
