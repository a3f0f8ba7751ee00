"""Is an address one, and an agreement the same only where it is?"""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker.peer_networks import SPACE

from betimes.broker.peers.settings import Agreement, address_of, split_address
from betimes.model.errors import SettingError
from betimes.model.overlay_settings import Metric


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:0", "host:65536", "a b:1", "a:1+", "h:²"])
def test_what_is_no_address_is_told(text):
    with pytest.raises(SettingError):
        split_address(text)


def test_a_peer_is_called_by_its_address_with_a_mark_if_it_publishes():
    assert address_of("a:1+") == address_of("a:1") == "a:1"


def test_agreements_differ_in_their_words_where_they_differ():
    agreement = Agreement(space=SPACE)
    others = [
        replace(agreement, metric=Metric.TIME),
        Agreement(space=replace(SPACE, levels=5)),
        Agreement(space=replace(SPACE, dimensions=SPACE.dimensions[::-1])),
    ]
    texts = {each.text for each in [agreement, *others]}
    assert len(texts) == 4
    assert agreement.text == "x:0..100 y:0..100, 6 levels, delays in hops"
