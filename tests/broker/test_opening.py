"""Does a hub begin with what its file holds, and leave the file to others in the end?"""

from __future__ import annotations

import pytest
from tests.broker.talking import OPEN_GATE, Client

from betimes.broker.core.restore import RestoringError
from betimes.broker.opening import open_hub
from betimes.model.buffer_settings import BufferSettings
from betimes.model.server_settings import Limits, ServerSettings


def test_without_a_file_nothing_is_kept_and_numbers_begin_at_the_time_of_day():
    with open_hub(ServerSettings(name="b7"), OPEN_GATE, now_s=1.0, wall_s=1234.5) as (hub, file):
        assert (file, hub.store, hub.name) == (None, None, "b7")
        assert hub.first_number == 1_234_500_000


def test_a_second_hub_goes_on_where_the_first_ended(tmp_path):
    settings = ServerSettings(store=str(tmp_path / "s.db"))
    with open_hub(settings, OPEN_GATE, now_s=1.0, wall_s=1000.0) as (hub, _):
        assert hub.store is not None
        Client(hub, "sub", session_expiry_interval=100).subscribe("t", qos=1)
        Client(hub, "pub").publish("t", b"kept", qos=1)
        hub.store.commit()
        first = hub.first_number
        Client(hub, "pub").publish("t", b"not committed", qos=1)
    with open_hub(settings, OPEN_GATE, now_s=50.0, wall_s=1001.0) as (hub, _):
        back = Client(hub, "sub", clean_start=False, now_s=50.0)
        assert [each.payload for each in back.first] == [b"kept"]
        assert hub.first_number > first


def test_a_file_that_cannot_be_taken_back_is_left_to_others(tmp_path):
    settings = ServerSettings(store=str(tmp_path / "s.db"))
    with open_hub(settings, OPEN_GATE, now_s=1.0, wall_s=1000.0) as (hub, _):
        assert hub.store is not None
        for name in ("a", "b"):
            Client(hub, name, session_expiry_interval=100)
        hub.store.commit()
    few = ServerSettings(store=settings.store, limits=Limits(sessions_max=1))
    with pytest.raises(RestoringError), open_hub(few, OPEN_GATE, now_s=1.0, wall_s=1000.0):
        pass
    with open_hub(settings, OPEN_GATE, now_s=1.0, wall_s=1000.0) as (hub, _):
        assert len(hub.sessions) == 2


@pytest.mark.parametrize("buffer", [None, BufferSettings()])
def test_what_is_published_is_kept_if_that_is_asked_for(buffer):
    settings = ServerSettings(buffer=buffer)
    with open_hub(settings, OPEN_GATE, now_s=0.0, wall_s=1_000.0) as (hub, _):
        assert (hub.replay is None) == (buffer is None)
        if hub.replay is not None:
            assert hub.replay.last_number == 1_000_000_000 - 1
