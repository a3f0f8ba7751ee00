"""Are the files that the page on MQTT shows ones that a broker takes?"""

from __future__ import annotations

import re
from pathlib import Path

from betimes.language.server_files import read_server_file

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mqtt.md"


def test_every_file_on_the_page_can_be_read():
    shown = re.findall(r"^```toml\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    first, second = (read_server_file(text, "docs/mqtt.md") for text in shown)
    assert [door.port for door in first.doors] == [1883, 8883, 8884]
    assert [door.port for door in second.doors] == [8083]
