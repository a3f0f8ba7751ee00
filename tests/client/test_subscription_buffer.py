"""Are messages of one subscription kept within bounds, handed out once, and not when they are too old?"""

from __future__ import annotations

from typing import Any

from betimes.client.messages import Message
from betimes.client.request import ask
from betimes.client.subscription_buffer import SubscriptionBuffer


class Buffer(SubscriptionBuffer):
    def __init__(self, buffer: int = 10, **asked: Any) -> None:
        super().__init__(ask("t", **asked), buffer=buffer)
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1


def message(number: int, **more: Any) -> Message:
    return Message(topic="t", payload=str(number).encode(), id=f"b1:{number}", **more)


def handed_out(buffer: Buffer, now_s: float = 0.0) -> list[bytes]:
    found = []
    while (next_one := buffer.next_waiting(now_s)) is not None:
        found.append(next_one.payload)
    return found


def test_the_oldest_are_dropped_and_each_message_wakes_the_program():
    buffer = Buffer(2)
    for number in range(5):
        buffer.take(message(number), 0.0)
    assert (buffer.dropped, len(buffer._waiting), buffer.wakes) == (3, 2, 5)
    assert handed_out(buffer) == [b"3", b"4"]
    assert len(buffer._waiting) == 0


def test_age_goes_on_while_a_message_waits():
    buffer = Buffer(max_delay="1s")
    buffer.take(message(1, age_s=0.9), 0.0)
    buffer.take(message(2, age_s=0.1), 0.0)
    found = buffer.next_waiting(0.5)
    assert found is not None
    assert (found.payload, found.age_s, buffer.late) == (b"2", 0.6, 1)
    assert buffer.next_waiting(0.5) is None


def test_where_it_resumes_nothing_is_taken_twice_and_tokens_tell_what_was_handed_out():
    buffer = Buffer(mode="semi-durable", after=["b1:0"])
    assert buffer.resume_properties() == [("resume-after", "b1:0")]
    for number in (1, 2, 2, 1, 3):
        buffer.take(message(number), 0.0)
    assert buffer.next_waiting(0.0) is not None
    assert (buffer.tokens(), buffer.resume_properties()) == (["b1:0,1"], [("resume-after", "b1:0,1-3")])
    assert handed_out(buffer) == [b"2", b"3"]
    assert Buffer().resume_properties() == []


def test_what_waits_is_forgotten_at_the_end():
    buffer = Buffer()
    buffer.take(message(1), 0.0)
    buffer.clear()
    assert (len(buffer._waiting), handed_out(buffer)) == (0, [])


def test_news_of_a_reservation_is_told_once():
    buffer = Buffer(bandwidth="20KB/s")
    buffer.answered([("bandwidth", "20KB/s"), ("latency", "10ms")])
    assert (buffer.is_reserved, buffer.bytes_per_s, buffer.latency_s) == (True, 20_000, 0.01)
    for _ in range(2):
        buffer.reservation_is("refused", "no bandwidth")
    assert [each.why for each in buffer.reservations] == ["no bandwidth"]
    assert buffer.bytes_per_s is None
