"""Who waits for whom, and for how long? The policy of flow control, without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from betimes.broker.delivery.flow import (
    CROWDED_SHARE,
    FULL_SPEED_BYTES,
    LOOKS_MAX,
    Backpressure,
    Flow,
    Pause,
)

MUCH, LITTLE = FULL_SPEED_BYTES, FULL_SPEED_BYTES - 1


@dataclass(eq=False)
class Slow:
    """A reader that is connected, and blocked unless the test says otherwise."""

    flow: Flow | None = field(default_factory=Flow)
    is_given_up: bool = False
    fullness: float = 0.0

    def __post_init__(self) -> None:
        assert self.flow is not None
        self.flow.blocked = True

    def drains(self) -> None:
        """Take some of what waits, and be blocked again."""
        assert self.flow is not None
        self.flow.drained()
        self.flow.blocked = True


def filled(policy: Backpressure, *readers: Slow) -> Flow:
    """Return the flow of a publisher whose last read filled up these readers."""
    flow = Flow()
    policy.just_filled.update(readers)
    policy.handled(flow)
    return flow


def test_a_connection_is_read_while_no_reason_is_against_it():
    assert Flow().may_read
    flow = Flow()
    flow.pause(Pause.RATE_LIMIT)
    flow.pause(Pause.SLOW_READERS)
    flow.pause(Pause.SLOW_READERS)
    flow.resume(Pause.SLOW_READERS)
    found = (flow.may_read, flow.is_paused(Pause.RATE_LIMIT), flow.is_paused(Pause.SLOW_READERS))
    assert found == (False, True, False)
    flow.resume(Pause.RATE_LIMIT)
    flow.resume(Pause.RATE_LIMIT)
    assert flow.may_read


def test_a_connection_that_ends_is_read_whatever_was_against_it():
    flow = Flow()
    for why in Pause:
        flow.pause(why)
    flow.resume_all()
    assert flow.may_read


def test_a_pause_of_the_rate_limit_is_taken_once():
    flow = Flow()
    flow.pause_s = 0.5
    assert (flow.take_pause_s(), flow.take_pause_s()) == (0.5, 0.0)


def test_a_socket_that_takes_more_is_not_blocked_and_that_is_counted():
    flow = Flow()
    flow.blocked = True
    flow.drained()
    assert (flow.blocked, flow.drains) == (False, 1)


def test_only_a_publisher_at_full_speed_waits():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert policy.must_wait(flow, MUCH)
    assert not policy.must_wait(flow, LITTLE)


def test_a_publisher_that_filled_up_nobody_waits_for_crowded_readers_only():
    policy, slow = Backpressure(), Slow()
    filled(policy, slow)
    innocent = filled(policy)
    slow.fullness = 0.9 * CROWDED_SHARE
    assert not policy.must_wait(innocent, MUCH)
    slow.fullness = CROWDED_SHARE
    assert policy.must_wait(innocent, MUCH)


def test_what_was_filled_up_is_that_of_the_last_read():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert list(flow.filled) == [slow]
    policy.handled(flow)
    assert not list(flow.filled)
    assert not policy.must_wait(flow, MUCH)


def test_nobody_waits_for_a_reader_that_is_not_blocked_or_not_there():
    policy, quick, gone = Backpressure(), Slow(), Slow()
    flow = filled(policy, quick, gone)
    assert quick.flow is not None
    quick.flow.drained()
    gone.flow = None
    assert not policy.must_wait(flow, MUCH)
    quick.fullness = gone.fullness = 1.0
    assert not policy.must_wait(Flow(), MUCH)


def test_a_look_says_whether_a_reader_made_progress():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert policy.must_wait(flow, MUCH)
    assert not policy.look()
    slow.drains()
    assert policy.look()
    assert not policy.look()


def test_a_reader_without_progress_is_given_up_after_so_many_looks():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert policy.must_wait(flow, MUCH)
    for _ in range(LOOKS_MAX - 1):
        policy.look()
    assert policy.must_wait(flow, MUCH)
    policy.look()
    assert slow.is_given_up
    assert not policy.must_wait(flow, MUCH)


def test_progress_begins_the_count_anew():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert policy.must_wait(flow, MUCH)
    for _ in range(2):
        for _ in range(LOOKS_MAX - 1):
            policy.look()
        slow.drains()
        policy.look()
    assert not slow.is_given_up


def test_who_is_waited_for_by_nobody_is_not_watched():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    assert policy.must_wait(flow, MUCH)
    policy.watch_none()
    for _ in range(LOOKS_MAX):
        assert not policy.look()
    assert not slow.is_given_up


def test_a_reader_that_goes_is_watched_no_more_and_forgotten_with_its_session():
    policy, slow = Backpressure(), Slow()
    flow = filled(policy, slow)
    slow.fullness = 1.0
    assert policy.must_wait(flow, MUCH)
    there, slow.flow = slow.flow, None
    assert not policy.look()
    slow.flow = there
    assert policy.must_wait(Flow(), MUCH)
    policy.forget(slow)
    assert not policy.must_wait(Flow(), MUCH)
