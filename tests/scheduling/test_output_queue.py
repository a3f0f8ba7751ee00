"""Does the pool keep arrival order and lose nothing, however it is filled, emptied, squeezed and grown?"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from betimes.kernels.types import Numbers
from betimes.model.events import Event, EventId
from betimes.scheduling.appraisal import (
    FIXED_S,
    GOES,
    HOPELESS,
    OPEN,
    S_PER_KB_MEAN,
    S_PER_KB_SD,
    WAY_FACTS,
)
from betimes.scheduling.output_queue import ROWS_AT_FIRST, SLOTS_AT_FIRST, OutputQueue, TakenMessage
from betimes.scheduling.strategies import EB, FIFO, PC, RL, STRATEGIES, Strategy, ebpc

LINKS, DESTINATIONS = 2, 4
# link 0 leads to destinations 0 and 1, link 1 to 1 and 2, none to 3
OPEN_WAYS = {(0, 0), (0, 1), (1, 1), (1, 2)}


def ways_open(pairs: set[tuple[int, int]]) -> Numbers:
    ways = np.zeros((WAY_FACTS, LINKS, DESTINATIONS))
    ways[S_PER_KB_MEAN], ways[S_PER_KB_SD], ways[FIXED_S] = 1.0, 0.2, 0.0
    for pair in pairs:
        ways[OPEN, *pair] = 1.0
    return ways


WAYS = ways_open(OPEN_WAYS)


def new_event(number: int = 1, size_kb: float = 1.0) -> Event:
    return Event(id=EventId("p", number), size_kb=size_kb)


def demand_rows(bounds_s: dict[int, list[float]]) -> Numbers:
    """Return a row for each (destination, bound), of one subscriber who pays 1."""
    rows = [
        (destination, bound_s, 1.0, 1.0, 0.0)
        for destination in sorted(bounds_s)
        for bound_s in bounds_s[destination]
    ]
    return np.array(rows).reshape(-1, 5)


def put(queue: OutputQueue, bounds_s: dict[int, list[float]], now_s: float = 0.0, event: Event | None = None):
    return queue.put(
        event or new_event(), demand_rows(bounds_s), np.array(sorted(bounds_s)), born_s=now_s, now_s=now_s
    )


def where_to(taken: TakenMessage) -> tuple[list[int], list[int]]:
    """Return the destinations of what was taken, and how many subscribers each has."""
    return taken.destinations.tolist(), taken.subscribers.tolist()


def choose(
    queue: OutputQueue, strategy: Strategy, link: int = 0, now_s: float = 0.0, postponed_s: float = 1.0
):
    slots, hopeless = queue.choose(strategy, link, WAYS, np.zeros(LINKS), 0.0, postponed_s, now_s)
    return (slots[0] if slots else None), hopeless


@dataclass
class PlainMessage:
    """A waiting message as one would write it down: bounds by destination."""

    event: Event
    born_s: float
    bounds_s: dict[int, list[float]]


@dataclass
class PlainQueue:
    """The slow twin: a list in arrival order."""

    waiting: list[PlainMessage] = field(default_factory=list)

    def open_to(self, message: PlainMessage, link: int) -> list[int]:
        return [each for each in sorted(message.bounds_s) if (link, each) in OPEN_WAYS]

    def alive(self, message: PlainMessage, destinations: list[int], now_s: float) -> bool:
        bounds_s = [bound_s for each in destinations for bound_s in message.bounds_s[each]]
        return any(bound_s >= now_s - message.born_s for bound_s in bounds_s)

    def take(self, message: PlainMessage, destinations: list[int]) -> tuple[list[int], list[int]]:
        counts = [len(message.bounds_s.pop(each)) for each in destinations]
        self.waiting = [each for each in self.waiting if each.bounds_s]
        return destinations, counts


bounds = st.lists(st.sampled_from([1.0, 3.0, 10.0, 50.0]), min_size=1, max_size=3)
bursts = st.tuples(
    st.just("put"), st.integers(1, 50), st.dictionaries(st.integers(0, DESTINATIONS - 1), bounds, min_size=1)
)
others: st.SearchStrategy[tuple[str, int, dict[int, list[float]]]] = st.tuples(
    st.sampled_from(["serve 0", "serve 1", "sweep"]), st.integers(1, 40), st.just({})
)


@pytest.mark.long
@settings(max_examples=60)
@given(st.lists(st.one_of(bursts, others), max_size=30))
def test_the_pool_does_what_a_plain_list_does(operations):
    queue, plain, now_s, number = OutputQueue(), PlainQueue(), 0.0, 0
    for what, times, bounds_s in operations:
        for _ in range(times):
            now_s += 0.05
            if what == "put":
                number += 1
                event = new_event(number)
                put(queue, bounds_s, now_s, event)
                copied = {each: list(found) for each, found in bounds_s.items()}
                plain.waiting.append(PlainMessage(event, now_s, copied))
            elif what == "sweep":
                check_sweep(queue, plain, now_s)
            else:
                check_serve(queue, plain, int(what[-1]), now_s)
            assert len(queue) == len(plain.waiting)
    left = [
        (m.event, sorted(m.bounds_s), [len(m.bounds_s[d]) for d in sorted(m.bounds_s)]) for m in plain.waiting
    ]
    found = []
    for slot in queue.condemn_all():
        taken = queue.take(slot, HOPELESS, now_s)
        found.append((queue.events[slot], *where_to(taken)))
    assert found == left
    assert len(queue) == 0


def check_serve(queue: OutputQueue, plain: PlainQueue, link: int, now_s: float) -> None:
    """First come, first served: the oldest that the link leads to and that someone can still get in time."""
    eligible = [each for each in plain.waiting if plain.open_to(each, link)]
    late = [each for each in eligible if not plain.alive(each, plain.open_to(each, link), now_s)]
    best = next((each for each in eligible if each not in late), None)
    slot, hopeless = choose(queue, FIFO, link, now_s)
    assert [queue.events[each] for each in hopeless] == [each.event for each in late]
    for each, message in zip(hopeless, late, strict=True):
        taken = queue.take(each, HOPELESS, now_s)
        assert where_to(taken) == plain.take(message, plain.open_to(message, link))
        assert taken.all_expired
    assert (slot is None) == (best is None)
    if slot is not None and best is not None:
        assert queue.events[slot] is best.event
        taken = queue.take(slot, GOES, now_s)
        assert taken.event is best.event
        assert taken.age_s == taken.wait_s == now_s - best.born_s
        assert where_to(taken) == plain.take(best, plain.open_to(best, link))


def check_sweep(queue: OutputQueue, plain: PlainQueue, now_s: float) -> None:
    """Every destination all of whose bounds have passed, whatever link leads there."""
    late = {
        id(message): [each for each in sorted(message.bounds_s) if not plain.alive(message, [each], now_s)]
        for message in plain.waiting
    }
    messages = [message for message in plain.waiting if late[id(message)]]
    slots = queue.expired(now_s)
    assert [queue.events[slot] for slot in slots] == [message.event for message in messages]
    for slot, message in zip(slots, messages, strict=True):
        taken = queue.take(slot, HOPELESS, now_s)
        assert where_to(taken) == plain.take(message, late[id(message)])
        assert taken.all_expired


def test_only_the_destinations_asked_for_wait():
    queue = OutputQueue()
    demand = demand_rows({0: [10.0], 1: [10.0, 20.0], 2: [10.0]})
    queue.put(new_event(), demand, np.array([1, 2]), born_s=0.0, now_s=0.0)
    (slot,) = queue.condemn_all()
    taken = queue.take(slot, HOPELESS, 0.0)
    assert where_to(taken) == ([1, 2], [2, 1])


def test_age_counts_from_birth_and_wait_from_arrival():
    queue = OutputQueue()
    queue.put(new_event(), demand_rows({0: [10.0]}), np.array([0]), born_s=2.0, now_s=5.0)
    (slot,) = queue.condemn_all()
    taken = queue.take(slot, HOPELESS, 6.0)
    assert (taken.age_s, taken.wait_s) == (4.0, 1.0)


@pytest.mark.parametrize("strategy", [FIFO, RL, EB, PC, ebpc(0.5)])
def test_ties_go_to_the_longest_waiting(strategy):
    queue, events = OutputQueue(), [new_event(number) for number in range(5)]
    for event in events:
        put(queue, {0: [10.0]}, event=event)
    for event in events:
        slot, _ = choose(queue, strategy)
        assert slot is not None
        assert queue.events[slot] is event
        queue.take(slot, GOES, 0.0)


@pytest.mark.parametrize(("strategy", "expected"), [(FIFO, 0), (RL, 1), (EB, 2), (PC, 1)])
def test_each_strategy_prefers_its_own(strategy, expected):
    queue = OutputQueue()
    put(queue, {0: [20.0]})  # came first
    put(queue, {0: [1.8]})  # would suffer most from waiting
    put(queue, {0: [9.0, 9.0, 9.0]})  # is worth most
    slot, hopeless = choose(queue, strategy, postponed_s=1.0)
    assert (slot, hopeless) == (expected, [])


@pytest.mark.long
@settings(max_examples=50)
@given(
    st.lists(st.tuples(bounds, st.sampled_from([0.5, 1.0, 3.0])), min_size=1, max_size=12),
    st.floats(0.0, 5.0),
)
def test_ebpc_chooses_like_eb_at_one_end_and_like_pc_at_the_other(messages, postponed_s):
    queue = OutputQueue()
    for bounds_s, size_kb in messages:
        put(queue, {0: bounds_s}, event=new_event(size_kb=size_kb))
    for now_s in (0.0, 1.0, 4.0):
        for strategy, same in ((ebpc(1.0), EB), (ebpc(0.0), PC)):
            chosen = choose(queue, strategy, now_s=now_s, postponed_s=postponed_s)
            assert chosen == choose(queue, same, now_s=now_s, postponed_s=postponed_s)


def test_an_empty_pool_has_nothing_to_send_drop_or_give_up():
    queue = OutputQueue()
    assert choose(queue, EB) == (None, [])
    assert queue.expired(100.0) == []
    assert queue.condemn_all() == []


def test_what_has_no_way_waits_until_there_is_one():
    queue = OutputQueue()
    put(queue, {3: [10.0]})
    assert choose(queue, FIFO) == (None, [])
    all_ways = ways_open({(0, each) for each in range(DESTINATIONS)})
    assert queue.choose(FIFO, 0, all_ways, np.zeros(LINKS), 0.0, 0.0, 0.0) == ([0], [])


def test_more_messages_and_rows_than_at_first_find_room_in_order():
    queue, count = OutputQueue(), 3 * SLOTS_AT_FIRST
    many = [float(bound_s) for bound_s in range(1, ROWS_AT_FIRST // SLOTS_AT_FIRST + 8)]
    events = [new_event(number) for number in range(count)]
    for event in events:
        put(queue, {0: many}, event=event)
    assert len(queue) == count
    for event in events:
        slot, _ = choose(queue, FIFO)
        assert slot is not None
        assert queue.events[slot] is event
        assert where_to(queue.take(slot, GOES, 0.0))[1] == [len(many)]
    assert len(queue) == 0


def test_one_message_larger_than_the_whole_pool_finds_room():
    queue = OutputQueue()
    put(queue, {0: [5.0]})
    put(queue, {1: [float(bound_s) for bound_s in range(1, 5 * ROWS_AT_FIRST)]})
    slots = queue.condemn_all()
    assert [where_to(queue.take(slot, HOPELESS, 0.0))[1] for slot in slots] == [[1], [5 * ROWS_AT_FIRST - 1]]


def test_what_is_given_up_while_someone_could_still_get_it_has_not_expired():
    queue = OutputQueue()
    put(queue, {0: [2.0, 30.0]})
    (slot,) = queue.condemn_all()
    assert not queue.take(slot, HOPELESS, 10.0).all_expired


@pytest.mark.parametrize("room", [1, 3])
def test_what_is_in_no_hurry_keeps_the_order_of_its_origin(room):
    """Though later ones are worth more, because more want them; what is hurried goes by its worth."""
    queue, never = OutputQueue(), float("inf")
    wanted_by = [1, 3, 2, 5, 4]
    for number, count in enumerate(wanted_by):
        put(queue, {0: [never] * count}, event=new_event(number))
    put(queue, {0: [10.0]}, event=new_event(100))
    numbers = []
    while len(queue):
        slots, _ = queue.choose(EB, 0, WAYS, np.zeros(LINKS), 0.0, 1.0, 0.0, room)
        for slot in slots:
            numbers.append(queue.events[slot].id.number)
            queue.take(slot, GOES, 0.0)
    assert [number for number in numbers if number != 100] == [0, 1, 2, 3, 4]
    assert sorted(numbers) == [0, 1, 2, 3, 4, 100]


def test_what_is_kept_for_nobody_yet_is_in_no_hurry():
    queue = OutputQueue()
    kept = np.array([(0.0, 10.0, 1e-6, 0.0, 0.0)])  # a bound, and no subscriber
    queue.put(new_event(1), kept, np.array([0]), born_s=0.0, now_s=0.0)
    put(queue, {0: [float("inf")]}, event=new_event(2))
    slot, _ = choose(queue, EB)
    assert slot is not None
    assert queue.events[slot].id.number == 1


@pytest.mark.parametrize("room", [1, 3])
def test_what_a_lost_link_gives_back_goes_before_what_came_after_it(room):
    queue, never = OutputQueue(), float("inf")
    for number in (4, 5, 1, 2, 3):
        put(queue, {0: [never] * (1 + number % 2)}, event=new_event(number))
    numbers = []
    while len(queue):
        slots, _ = queue.choose(EB, 0, WAYS, np.zeros(LINKS), 0.0, 1.0, 0.0, room)
        numbers += [queue.events[slot].id.number for slot in slots]
        for slot in slots:
            queue.take(slot, GOES, 0.0)
    assert numbers == [1, 2, 3, 4, 5]


def flow_event(number: int, topic: str) -> Event:
    return Event(id=EventId("p", number), topic=topic)


def test_the_first_of_a_watched_flow_is_found_in_order_and_by_open_ways():
    queue = OutputQueue()
    put(queue, {0: [9.0]}, event=flow_event(1, "cars"))
    queue.watch(["cars"])  # what waits already counts
    put(queue, {0: [9.0]}, event=flow_event(2, "ships"))
    put(queue, {2: [9.0]}, event=flow_event(3, "cars"))
    put(queue, {0: [9.0]}, event=flow_event(4, "cars"))
    taken = []
    while (slot := queue.first_of("cars", 0, WAYS, 1.0)) is not None:
        taken.append(queue.take(slot, GOES, 1.0).event.id.number)
    assert taken == [1, 4]
    assert queue.first_of("cars", 1, WAYS, 1.0) is not None
    assert queue.first_of("ships", 0, WAYS, 1.0) is None  # not watched
    assert len(queue) == 2


def test_a_watched_flow_is_found_after_the_pool_was_squeezed_and_not_when_it_is_late():
    queue = OutputQueue()
    queue.watch(["cars"])
    for number in range(3 * SLOTS_AT_FIRST):
        put(queue, {0: [9.0]}, event=flow_event(number, "cars" if number % 3 == 0 else "ships"))
        if number % 2:
            queue.take(queue.choose(FIFO, 0, WAYS, np.zeros(LINKS), 0.0, 1.0, 0.0)[0][0], GOES, 0.0)
    found = []
    while (slot := queue.first_of("cars", 0, WAYS, 0.0)) is not None:
        found.append(queue.take(slot, GOES, 0.0).event.id.number)
    assert found == sorted(found)
    assert found
    assert all(event.topic == "ships" for event in queue.waiting())
    put(queue, {0: [9.0]}, event=flow_event(999, "cars"))
    assert queue.first_of("cars", 0, WAYS, 7.5) is not None
    assert queue.first_of("cars", 0, WAYS, 8.5) is None  # it takes a second


@dataclass
class Twins:
    """Two pools with the same in them: one is asked to choose and to take, the other does both at once."""

    plain: OutputQueue = field(default_factory=OutputQueue)
    quick: OutputQueue = field(default_factory=OutputQueue)

    def serve(self, strategy: Strategy, link: int, contention: float, now_s: float) -> tuple[object, object]:
        """Return what goes and what is given up, of each."""
        setting = link, WAYS, FREE_AT_S, contention, 1.0, now_s
        chosen, hopeless = self.plain.choose(strategy, *setting)
        left = [where_to(self.plain.take(slot, HOPELESS, now_s)) for slot in hopeless]
        sent = [self.plain.take(slot, GOES, now_s)[:4] for slot in chosen]
        going, slots = self.quick.take_next(strategy, *setting)
        dropped = [where_to(self.quick.take(slot, HOPELESS, now_s)) for slot in slots]
        gone = [] if going is None else [going]
        as_lists = [[(*each[:3], each[3].tolist()) for each in found] for found in (sent, gone)]
        return (as_lists[0], hopeless, left), (as_lists[1], slots, dropped)


FREE_AT_S = np.array([0.0, 2.0])
maybe_endless = st.lists(st.sampled_from([1.0, 3.0, 10.0, float("inf")]), min_size=1, max_size=3)
arrivals = st.tuples(
    st.integers(1, 30), st.dictionaries(st.integers(0, DESTINATIONS - 1), maybe_endless, min_size=1)
)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@given(st.lists(arrivals, min_size=1, max_size=6), st.sampled_from([0.0, 0.5, 1.0]))
def test_to_take_the_next_is_to_choose_and_to_take(strategy, bursts, contention):
    twins, now_s, number = Twins(), 0.0, 0
    for times, bounds_s in bursts:
        for _ in range(times):
            now_s, number = now_s + 0.1, number + 1
            event = new_event(number, size_kb=0.5 + number % 3)
            for queue in (twins.plain, twins.quick):
                put(queue, bounds_s, now_s, event)
        for turn in range(times):
            one, other = twins.serve(strategy, turn % LINKS, contention, now_s)
            assert one == other
        assert len(twins.plain) == len(twins.quick)
        assert twins.plain.waiting_kb == pytest.approx(twins.quick.waiting_kb)


def test_a_copy_of_a_pool_looks_at_its_own_arrays():
    queue = OutputQueue()
    for number in range(3):
        put(queue, {0: [9.0]}, event=new_event(number))
    setting = FIFO, 0, WAYS, FREE_AT_S, 0.0, 1.0, 0.0
    queue.take_next(*setting)
    copied = copy.deepcopy(queue)
    for each in (queue, copied):
        going, _ = each.take_next(*setting)
        assert going is not None
        assert going[0].id.number == 1
