"""Is an address read as it is meant, and a mistake in it told without its password?"""

from __future__ import annotations

import pytest

from betimes.client.addresses import Address, read_address
from betimes.model.errors import SettingError


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("mqtt://h", Address(scheme="mqtt", host="h", port=1883)),
        ("mqtts://h", Address(scheme="mqtts", host="h", port=8883)),
        ("ws://h", Address(scheme="ws", host="h", port=80, path="/mqtt")),
        ("wss://h:9001/live/mqtt", Address(scheme="wss", host="h", port=9001, path="/live/mqtt")),
        ("mqtt://[::1]:7", Address(host="::1", port=7)),
        ("mqtt://ann@h", Address(host="h", user="ann")),
        ("mqtt://ann:s%40e%2Fc@h", Address(host="h", user="ann", password="s@e/c")),
        ("mqtt://h?client_id=door", Address(host="h", client_id="door")),
        ("mqtt://h/traffic/a4", Address(host="h", path="traffic/a4")),
    ],
)
def test_an_address_says_where_and_who(text, address):
    assert read_address(text) == address


def test_an_address_knows_its_transport_and_hides_its_password():
    address = read_address("wss://ann:secret@h")
    assert address.has_websockets
    assert str(address) == "wss://h:443"
    assert "secret" not in repr(address)
    assert str(read_address("mqtt://[::1]")) == "mqtt://[::1]:1883"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("localhost", "begins with one of mqtt, mqtts, ws, wss"),
        ("http://ann:secret@h", "begins with one of"),
        ("mqtt://", "no host"),
        ("mqtt://ann:secret@h:0", "port"),
        ("mqtt://ann:secret@h:70000", "port"),
        ("mqtt://ann:secret@h:x", "port"),
        ("mqtt://ann:se#cret@h", ""),
        ("mqtt://ann:secret@h#part", "%23"),
        ("mqtt://ann:secret@h?clientid=x", "did you mean client_id"),
        ("mqtt://ann:secret@[::1", "Invalid IPv6"),
        ("mqtt://h\n", "printable"),
        ("mqtt://" + "h" * 5000, "too long"),
    ],
)
def test_a_mistake_is_told_without_the_password(text, said):
    with pytest.raises(SettingError, match="address") as error:
        read_address(text)
    assert said in str(error.value)
    assert "secret" not in str(error.value)
