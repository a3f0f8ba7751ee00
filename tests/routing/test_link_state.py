"""Do all brokers end up knowing the same of each other?"""

from __future__ import annotations

import random
from itertools import pairwise, product

import pytest

from betimes.model.subscriptions import Subscription
from betimes.model.topology import Link
from betimes.routing.link_state import Bulletin, BulletinVerdict, LinkBulletin, LinkState


def link(source, target, mean=1.0):
    return Link(source=source, target=target, s_per_kb_mean=mean)


def wish(wish_id, home="a"):
    return Subscription(id=wish_id, home=home)


def test_a_link_counts_once_both_ends_tell_of_it():
    a, b = LinkState("a", 1), LinkState("b", 1)
    assert a.take_in(b.tell_links([link("b", "a")])) is BulletinVerdict.NEW
    assert a.links() == []
    a.tell_links([link("a", "b")])
    assert {each.name for each in a.links()} == {"a->b", "b->a"}


def test_an_old_bulletin_changes_nothing():
    a, b = LinkState("a", 1), LinkState("b", 1)
    first, second = b.tell_links([]), b.tell_links([link("b", "a")])
    a.tell_links([link("a", "b")])
    assert a.take_in(second) is BulletinVerdict.NEW
    assert a.take_in(first) is BulletinVerdict.OLD
    assert a.take_in(second) is BulletinVerdict.OLD
    assert len(a.links()) == 2


def test_demand_is_followed_by_its_changes():
    a, b = LinkState("a", 1), LinkState("b", 1)
    a.take_in(b.tell_demand([wish("1", "b"), wish("2", "b")], []))
    a.take_in(b.tell_demand([wish("3", "b")], ["1"]))
    assert set(a.demand_of("b")) == {"2", "3"}
    assert a.demand_of("nobody") == {}


def test_a_missing_change_is_noticed():
    a, b = LinkState("a", 1), LinkState("b", 1)
    a.take_in(b.tell_demand([], []))
    b.tell_demand([wish("1", "b")], [])
    assert a.take_in(b.tell_demand([wish("2", "b")], [])) is BulletinVerdict.GAP
    assert a.demand_of("b") == {}


def test_a_restart_begins_anew():
    a, b = LinkState("a", 1), LinkState("b", 1)
    for number in range(5):
        a.take_in(b.tell_demand([wish(str(number), "b")], []))
    again = LinkState("b", 2)
    assert a.take_in(again.tell_demand([], [])) is BulletinVerdict.NEW
    assert a.demand_of("b") == {}


def test_a_broker_outdoes_its_own_earlier_life():
    a, early, late = LinkState("a", 1), LinkState("b", 7), LinkState("b", 3)  # its clock went back
    a.take_in(early.tell_demand([wish("1", "b")], []))
    late.tell_demand([], [])
    (old,) = [each for each in a.everything() if each.broker == "b"]
    assert late.take_in(old) is BulletinVerdict.OURS
    late.begin_epoch(old.epoch + 1)
    for each in late.everything():
        assert a.take_in(each) is BulletinVerdict.NEW
    assert a.demand_of("b") == {}


def test_nobody_tells_a_broker_about_itself():
    a = LinkState("a", 5)
    assert a.take_in(LinkBulletin(broker="a", epoch=5, number=9, links=())) is BulletinVerdict.OLD


class Gossip:
    """Brokers that pass bulletins on, over links that deliver in order but not at any certain time."""

    def __init__(self, names: list[str], seed: int) -> None:
        self.chance = random.Random(seed)
        self.known = {name: LinkState(name, 1) for name in names}
        self.up: list[tuple[str, str]] = []
        self._inbox: dict[tuple[str, str], list[Bulletin]] = {}
        for each in self.known.values():
            each.tell_demand([], [])

    def join(self, one: str, other: str) -> None:
        """Let a link come up, for the first time or again: what was on it is lost."""
        if (one, other) not in self.up:
            self.up.append((one, other))
        self._inbox[one, other] = self.known[one].everything()
        self._inbox[other, one] = self.known[other].everything()

    def send(self, source: str, bulletin: Bulletin, but: str = "") -> None:
        for pair in self.up:
            if source in pair:
                other = pair[pair[0] == source]
                if other != but:
                    self._inbox[source, other].append(bulletin)

    def deliver_one(self) -> bool:
        waiting = [ends for ends, bulletins in self._inbox.items() if bulletins]
        if not waiting:
            return False
        source, target = self.chance.choice(waiting)
        bulletin = self._inbox[source, target].pop(0)
        verdict = self.known[target].take_in(bulletin)
        assert verdict is not BulletinVerdict.GAP
        if verdict is BulletinVerdict.NEW:
            self.send(target, bulletin, but=source)
        return True

    def change_wishes(self, name: str) -> None:
        own = self.known[name]
        gone = list(own.demand_of(name))[:1] if self.chance.random() < 0.3 else []
        self.send(name, own.tell_demand([wish(str(self.chance.random()), name)], gone))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_order_links_come_up_in_everybody_ends_up_knowing_the_same(seed):
    names = [f"b{number}" for number in range(6)]
    gossip = Gossip(names, seed)
    pairs = [*pairwise(names), (names[0], names[3])]
    gossip.chance.shuffle(pairs)
    for pair in pairs:
        for name in names:
            if gossip.chance.random() < 0.5:
                gossip.change_wishes(name)
            gossip.deliver_one()
        gossip.join(*pair)
        if gossip.chance.random() < 0.3:
            gossip.join(*gossip.chance.choice(gossip.up))
    while gossip.deliver_one():
        pass
    for one, other in product(names, names):
        assert gossip.known[one].demand_of(other) == gossip.known[other].demand_of(other)


def test_the_epoch_in_which_a_broker_was_last_heard_of_is_known():
    ours = LinkState("a", 5)
    assert ours.epoch_of("b") == 0
    ours.take_in(LinkState("b", 7).tell_links([]))
    assert ours.epoch_of("b") == 7
