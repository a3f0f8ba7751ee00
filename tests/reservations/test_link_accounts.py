"""Is no link ever promised more than it has, and does everything come back?"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from betimes.reservations.link_accounts import Instead, Reservations

CAPACITY = {"a": 10, "b": 7, "c": 0}
neighbours = st.sampled_from(sorted(CAPACITY))
flows = st.sampled_from(["f", "g", "h", "i"])


class Promises(RuleBasedStateMachine):
    """Any sequence of what can happen to promises, beside a plain list of them."""

    def __init__(self):
        super().__init__()
        self.now_s = 0.0
        self.book = Reservations(CAPACITY.__getitem__)
        self.held = {}

    @rule(flow=flows, neighbour=neighbours, asked=st.integers(1, 12), lasts_s=st.integers(1, 5))
    def ask(self, flow, neighbour, asked, lasts_s):
        if (flow, neighbour) in self.held:
            assert self.book.holds(flow, neighbour)
            return
        fits = asked <= CAPACITY[neighbour] - self.sum_at(neighbour)
        assert self.book.promise(flow, neighbour, asked, self.now_s + lasts_s) == fits
        if fits:
            self.held[flow, neighbour] = (asked, self.now_s + lasts_s)

    @rule(flow=flows, neighbour=neighbours)
    def release(self, flow, neighbour):
        assert self.book.release(flow, neighbour) == (self.held.pop((flow, neighbour), None) is not None)

    @rule(flow=flows, neighbour=neighbours, lasts_s=st.integers(1, 5))
    def refresh(self, flow, neighbour, lasts_s):
        known = self.held.get((flow, neighbour))
        assert self.book.refresh(flow, neighbour, self.now_s + lasts_s) == (known is not None)
        if known is not None:
            self.held[flow, neighbour] = (known[0], max(known[1], self.now_s + lasts_s))

    @rule(seconds=st.integers(1, 4))
    def wait(self, seconds):
        self.now_s += seconds
        over = {key for key, (_, lapses_s) in self.held.items() if lapses_s <= self.now_s}
        assert set(self.book.lapsed(self.now_s)) == over
        self.held = {key: value for key, value in self.held.items() if key not in over}

    def sum_at(self, neighbour):
        return sum(asked for (_, at), (asked, _) in self.held.items() if at == neighbour)

    @invariant()
    def no_link_is_promised_more_than_it_has(self):
        for neighbour, capacity in CAPACITY.items():
            assert self.book.promised(neighbour) == self.sum_at(neighbour) <= capacity
            assert self.book.room(neighbour) == capacity - self.sum_at(neighbour)
        assert len(self.book) == len(self.held)

    def teardown(self):
        for flow, neighbour in list(self.held):
            self.release(flow, neighbour)
        assert len(self.book) == 0
        assert all(self.book.room(name) == capacity for name, capacity in CAPACITY.items())


TestPromises = Promises.TestCase


@given(st.lists(st.integers(1, 30), max_size=20))
def test_whatever_is_asked_the_sum_fits(asked):
    book = Reservations(lambda _: 50)
    for number, each in enumerate(asked):
        book.promise(f"f{number}", "a", each)
    assert book.promised("a") <= 50
    for number in range(len(asked)):
        book.release(f"f{number}", "a")
    assert book.room("a") == 50


def test_a_link_whose_capacity_fell_has_no_room():
    capacity = {"a": 10}
    book = Reservations(capacity.__getitem__)
    assert book.promise("f", "a", 8)
    capacity["a"] = 5
    assert book.room("a") == 0
    assert not book.promise("g", "a", 1)


def test_flows_of_one_trunk_take_the_bandwidth_of_a_link_once():
    book = Reservations(CAPACITY.__getitem__)
    assert book.promise("cars@p@7|x", "b", 7)
    assert book.fits("cars@p@7|y", "b", 7)
    assert not book.fits("cars@q@7|y", "b", 7)
    assert book.promise("cars@p@7|y", "b", 7)
    assert (book.promised("b"), book.room("b")) == (7, 0)
    assert not book.promise("cars@p@7|z", "b", 8)  # a name says what is promised under it
    book.release("cars@p@7|x", "b")
    assert book.promised("b") == 7
    book.release("cars@p@7|y", "b")
    assert (book.promised("b"), len(book)) == (0, 0)


def test_where_a_flow_does_not_fit_it_may_share_what_others_have_of_the_same_events():
    book = Reservations(lambda _: 60)
    for flow, bytes_per_s in (
        ("cars@p@30|x", 30),
        ("cars@p@10|y", 10),
        ("ships@p@15", 15),
        ("cars@p@4#own", 4),
    ):
        assert book.promise(flow, "a", bytes_per_s)
    assert book.instead("cars@p@20|z", "a") == Instead(1, 30)
    assert book.instead("cars@q@20|z", "a") == Instead(1, 0)
    assert book.instead("cars@p@20#mine", "a") == Instead(1, 0)
    assert book.instead("cars@p@70|z", "b") == Instead(60, 0)


def test_what_will_be_given_back_shortly_is_told_where_something_does_not_fit():
    ledger = Reservations(lambda _: 50)
    ledger.promise("cars@p@40|s|1", "n", 40)
    assert not ledger.instead("ships@p@20", "n").is_passing
    ledger.leave("cars@p@40|s|1", "n")
    ledger.leave("unknown@p@1", "m")
    assert ledger.instead("ships@p@20", "n") == Instead(10, 0, is_passing=True)
    assert not ledger.fits("ships@p@20", "n", 20)  # until then it holds
    ledger.release("cars@p@40|s|1", "n")
    assert not ledger.instead("ships@p@20", "n").is_passing
