"""Does a hub begin with what its file holds, and leave the file to others in the end?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.broker.talking import OPEN_ACCESS, Client

from betimes.broker.composition import Composition, compose, open_store
from betimes.broker.durability.restore import RestoringError
from betimes.model.buffer_settings import BufferSettings
from betimes.model.server_settings import Limits, ServerSettings


@contextmanager
def opened(settings: ServerSettings, *, now_s: float = 1.0, wall_s: float = 1000.0) -> Iterator[Composition]:
    with open_store(settings) as (kept, file):
        assert (kept is None) == (file is None) == (settings.store is None)
        yield compose(
            settings, OPEN_ACCESS, now_s=now_s, wall_s=wall_s, epoch=1, kept=kept, model_came=lambda: None
        )


def test_without_a_file_nothing_is_kept_and_numbers_begin_at_the_time_of_day():
    with opened(ServerSettings(name="b7"), wall_s=1234.5) as broker:
        assert (broker.store, broker.hub.name) == (None, "b7")
        assert broker.hub.publishing.next_number == 1_234_500_000


def test_a_second_hub_goes_on_where_the_first_ended(tmp_path):
    settings = ServerSettings(store=str(tmp_path / "s.db"))
    with opened(settings) as broker:
        assert broker.store is not None
        first = broker.hub.publishing.next_number
        Client(broker.hub, "sub", session_expiry_interval=100).subscribe("t", qos=1)
        Client(broker.hub, "pub").publish("t", b"kept", qos=1)
        broker.store.commit()
        Client(broker.hub, "pub").publish("t", b"not committed", qos=1)
    with opened(settings, now_s=50.0, wall_s=1001.0) as broker:
        assert broker.hub.publishing.next_number > first
        back = Client(broker.hub, "sub", clean_start=False, now_s=50.0)
        assert [each.payload for each in back.first] == [b"kept"]


def test_a_file_that_cannot_be_taken_back_is_left_to_others(tmp_path):
    settings = ServerSettings(store=str(tmp_path / "s.db"))
    with opened(settings) as broker:
        assert broker.store is not None
        for name in ("a", "b"):
            Client(broker.hub, name, session_expiry_interval=100)
        broker.store.commit()
    few = ServerSettings(store=settings.store, limits=Limits(sessions_max=1))
    with pytest.raises(RestoringError), opened(few):
        pass
    with opened(settings) as broker:
        assert len(broker.hub.sessions) == 2


@pytest.mark.parametrize("buffer", [None, BufferSettings()])
def test_what_is_published_is_kept_if_that_is_asked_for(buffer):
    with opened(ServerSettings(buffer=buffer)) as broker:
        replay = broker.hub.replay
        assert (replay is None) == (buffer is None)
        if replay is not None:
            assert replay.last_number == 1_000_000_000 - 1
