"""Where do the links of a page lead? To files, and to headings, which have anchors as GitHub makes them."""

from __future__ import annotations

import re
from pathlib import Path

LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ +(.*?) *$", re.MULTILINE)
ELSEWHERE = ("http://", "https://", "mailto:")


def links(text: str) -> list[str]:
    """Return the links of a page that stay in the repository."""
    return [link for link in LINK.findall(CODE.sub("", text)) if not link.startswith(ELSEWHERE)]


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are called in links: the second of a name has -1, and so on."""
    found: dict[str, int] = {}
    made: set[str] = set()
    fenced = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(fenced):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = found.get(name, 0)
        found[name] = count + 1
        made.add(f"{name}-{count}" if count else name)
    return made


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    wrong = []
    for link in links(page.read_text()):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            wrong.append(link)
    return wrong
