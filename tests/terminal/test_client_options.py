"""Do the options together mean the broker that the person meant?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from betimes.client.addresses import Address
from betimes.model.errors import SettingError
from betimes.terminal.client_options import Reach, reach

NOTHING: dict[str, Any] = dict.fromkeys(("host", "port", "user", "password", "client_id", "cafile", "url"))


def reached(topics: list[str], **options: Any) -> Reach:
    return reach(topics, **{**NOTHING, **options})


def test_without_options_it_is_this_machine():
    assert reached(["t"]) == Reach(address=Address(host="127.0.0.1", port=1883), ca=None, topics=("t",))


def test_a_certificate_means_encryption_and_its_port():
    found = reached(["t"], cafile=Path("ca.pem"), host="h")
    assert (str(found.address), found.ca) == ("mqtts://h:8883", Path("ca.pem"))


def test_a_url_says_all_and_options_win_over_it():
    found = reached([], url="mqtt://ann:secret@h:7/traffic/a4")
    assert (found.address.user, found.address.password) == ("ann", "secret")
    assert (str(found.address), found.topics) == ("mqtt://h:7", ("traffic/a4",))
    found = reached(["t"], url="ws://ann@h/path", user="bob", password="x", client_id="c")
    assert (found.address.user, found.address.password, found.address.client_id) == ("bob", "x", "c")
    assert found.topics == ("t",)


@pytest.mark.parametrize(
    ("topics", "options", "said"),
    [
        ([], {}, "there is no topic"),
        (["t"], {"port": 0}, "between 1 and 65535"),
        (["t"], {"port": 65_536}, "between 1 and 65535"),
        (["t"], {"host": " "}, "a host name or an address"),
        (["t"], {"url": "mqtt://h", "host": "h"}, "leave out --host"),
        (["t"], {"url": "http://h"}, "begins with one of"),
    ],
)
def test_a_mistake_is_told(topics, options, said):
    with pytest.raises(SettingError, match=said):
        reached(topics, **options)
