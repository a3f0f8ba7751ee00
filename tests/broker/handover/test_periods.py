"""Does every event reach a session that moves by exactly one broker, whatever its publisher's broker knew?"""

from __future__ import annotations

from typing import Any

import mqtt5
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.delivery.publication import Publication
from betimes.broker.handover.periods import NEVER, PastPeriod, PresentPeriod
from betimes.model.subscriptions import DemandVersion


def event(**views: int) -> Publication:
    known = {home: DemandVersion(1, number) for home, number in views.items()}
    return Publication(mqtt5.PublishPacket("t", b""), "t", born_s=0.0, views=known)


def past(home: str, target: str, target_since: int, **options: Any) -> PastPeriod:
    since = DemandVersion(1, target_since)
    return PastPeriod(home=home, target=target, target_since=since, version_of=lambda _: NEVER, **options)


# A session was opened at a, moved to b (whose demand has it since version 5), to c (7), and back to a (9).
# The chosen destinations are the brokers where the publisher's broker knew of it.
@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_an_event_comes_once_however_the_session_went(a, b, c):
    stays = {
        "a": past("a", "b", 5, until=DemandVersion(1, 9)),
        "b": past("b", "c", 7, since=DemandVersion(1, 5)),
        "c": past("c", "a", 9, since=DemandVersion(1, 7)),
    }
    here = PresentPeriod(home="a", since=DemandVersion(1, 9))
    # Every broker knew of it somewhere: demand is withdrawn only when the next place is known to all.
    found = event(a=a, b=b, c=c)
    came = int(here.covers(found))
    for first in stays:
        at = first
        if not stays[at].covers(found):
            continue
        while True:  # what is forwarded goes from broker to broker, as long as it follows
            at = stays[at].target
            if at == "a":
                came += 1
                break
            if not stays[at].follows(found):
                break
    assert came == 1


def test_what_is_published_where_the_session_was_goes_by_what_is_known_there():
    known = {"b": DemandVersion(1, 4)}
    stay = PastPeriod(
        home="a", target="b", target_since=DemandVersion(1, 5), version_of=lambda home: known[home]
    )
    local = Publication(mqtt5.PublishPacket("t", b""), "t", born_s=0.0)
    assert stay.covers(local)
    known["b"] = DemandVersion(1, 5)
    assert not stay.covers(local)
