"""Are the options of `connect` and `connect_sync` read, and mistakes in them told at once?"""

from __future__ import annotations

import pytest

from betimes.client.addresses import read_address
from betimes.client.settings import ADDRESSES_MAX, read_addresses, read_settings
from betimes.model.errors import SettingError

NOBODY = {"client_id": None, "user": None, "password": None}


def test_what_is_given_by_name_wins_over_the_address():
    (found,) = read_addresses("mqtt://ann:x@h?client_id=c", client_id="d", user="bob", password="y")
    assert (found.client_id, found.user, found.password) == ("d", "bob", "y")
    first, second = read_addresses(["mqtt://ann:x@h?client_id=c", "ws://i/live"], **NOBODY)
    assert (first.client_id, first.user, second.path) == ("c", "ann", "/live")


@pytest.mark.parametrize("addresses", [[], ["mqtt://h"] * (ADDRESSES_MAX + 1)])
def test_so_many_brokers_are_named_and_no_more(addresses):
    with pytest.raises(SettingError, match="between 1 and 100"):
        read_addresses(addresses, **NOBODY)


def test_durations_are_seconds_and_a_session_has_one_client_id_at_all_brokers():
    places = [read_address("mqtt://h"), read_address("mqtt://i"), read_address("mqtt://j?client_id=own")]
    settings = read_settings(places, timeout="250ms", reconnect=3, session="1h", advertised={"t": "1KB/s"})
    assert (settings.timeout_s, settings.reconnect_s, settings.session_s) == (0.25, 3.0, 3600.0)
    assert settings.advertised == (("advertise", "t = 1KB/s"),)
    first, second, third = [each.address.client_id for each in settings.places]
    assert first == second
    assert str(first).startswith("betimes-")
    assert third == "own"
    assert read_settings(places).places[0].address.client_id is None
