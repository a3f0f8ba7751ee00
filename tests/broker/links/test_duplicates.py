"""Is an event known again?"""

from __future__ import annotations

from betimes.broker.links import duplicates
from betimes.broker.links.duplicates import SeenEvents
from betimes.model.events import EventId


def test_an_event_is_new_once():
    seen = SeenEvents()
    assert seen.is_new(EventId("a", 1))
    assert not seen.is_new(EventId("a", 1))
    assert seen.is_new(EventId("b", 1))


def test_only_the_latest_of_an_origin_are_remembered(monkeypatch):
    monkeypatch.setattr(duplicates, "NUMBERS_MAX", 3)
    seen = SeenEvents()
    for number in range(4):
        assert seen.is_new(EventId("a", number))
    assert not seen.is_new(EventId("a", 1))
    assert seen.is_new(EventId("a", 0))  # long forgotten
