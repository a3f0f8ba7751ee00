"""Is what brokers say of sessions read as it was written, and everything else refused?"""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from betimes.broker.handover.packets import (
    InquiryId,
    LateDeliveries,
    LateTaken,
    MoreParts,
    NoSession,
    SessionInquiry,
    SessionPart,
    SessionTaken,
    TransferDoubt,
    TransferOff,
    read_session_message,
    written,
)
from betimes.broker.links.packets import LinkError
from betimes.model.subscriptions import DemandVersion

ID = InquiryId("b1", 7)


@pytest.mark.parametrize(
    "said",
    [
        SessionInquiry(id=ID, client_id="ben", user=None, packet_bytes_max=10),
        SessionInquiry(id=ID, client_id="b\nn", user="ben", packet_bytes_max=10),
        NoSession(id=ID),
        NoSession(id=ID, is_moving=True, brokers=("b2", "b3")),
        SessionPart(id=ID, number=2, is_last=True, expiry_s=math.inf, rows=[["i", 5]], packets=b"\n\x00\n"),
        MoreParts(id=ID, parts=3),
        SessionTaken(id=ID, since=DemandVersion(3, 4)),
        TransferOff(id=ID),
        TransferDoubt(id=ID),
        LateDeliveries(id=ID, client_id="ben", numbers=[], rows=[], packets=b""),
        LateTaken(id=ID, last=9),
    ],
)
def test_it_is_read_as_it_was_written(said):
    assert read_session_message(written(said)) == said


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "asker",
                        "number",
                        "ask",
                        "user",
                        "bytes",
                        "no",
                        "part",
                        "last",
                        "expiry",
                        "rows",
                        "late",
                        "numbers",
                        "brokers",
                        "taken",
                        "had",
                        "off",
                    ]
                ),
                inner,
            )
        ),
    )
)
def test_garbage_is_an_error_of_the_link_or_makes_sense(told):
    with suppress(LinkError):  # and no other
        assert read_session_message(json.dumps(told).encode()).id.asker
