"""Is the file that the page on networks shows one that a broker takes?"""

from __future__ import annotations

import re
from pathlib import Path

from betimes.language.files.server_file import read_server_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "networks.md"


def test_the_files_on_the_page_can_be_read():
    shown = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    found = [read_server_file(each, "docs/networks.md").network for each in shown]
    links = [[(link.to, link.port if link.host else None) for link in each.links] for each in found if each]
    assert links == [[("centre", 8883), ("station", None)], [("centre", 8884)]]
    assert [each.named_certificates for each in found if each] == [False, True]
