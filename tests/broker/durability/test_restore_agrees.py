"""Does a hub that crashes and comes back from its store behave like one that never stopped?

Two hubs get the same packets. When the one with a store crashes, the other only loses its connections. A
crash may come before what just happened was committed: then nobody heard of it, and the other hub never did.
Packet ids may differ, so what is acknowledged is named by its place.
"""

from __future__ import annotations

from typing import Any

import mqtt5
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.keeping import EPOCH_S, Shelf, kept_hub
from tests.broker.talking import Client, new_hub

from betimes.broker.core.hub import Hub

NAMES = ("c1", "c2", "c3")
STEP_S = 1 / 1024  # no two steps lie whole seconds apart, so no two wills or sessions are due at once
STEPS_MAX = 50
FOR_EVER = 0xFFFFFFFF
Step = tuple[Any, ...]

names = st.sampled_from(NAMES)
topics = st.sampled_from(["a", "b", "r"])
qualities = st.sampled_from([1, 2])
wishes = st.sampled_from([{}, {"max-delay": "3s"}, {"filter": "speed > 5"}])
steps = st.one_of(
    st.tuples(
        st.just("connect"),
        names,
        st.booleans(),
        st.sampled_from([0, 4, 60, FOR_EVER]),
        st.sampled_from([1, 2, 100]),
        st.sampled_from([None, 1, 5]),
    ),
    st.tuples(st.just("subscribe"), names, st.sampled_from(["a", "+", "r"]), qualities, wishes),
    st.tuples(st.just("unsubscribe"), names, st.sampled_from(["a", "+", "r"])),
    st.tuples(
        st.just("publish"), names, topics, qualities, st.sampled_from([None, 2, 30]), st.integers(1, 4)
    ),
    st.tuples(st.just("publish"), names, topics, qualities, st.none(), st.integers(1, 4)),
    st.tuples(st.just("release"), names, st.integers(1, 4)),
    st.tuples(st.just("answer"), names),
    st.tuples(st.just("answer"), names),
    st.tuples(st.just("disconnect"), names, st.sampled_from([None, 0, 7])),
    st.tuples(st.just("lose"), names),
    st.tuples(st.just("wait"), st.sampled_from([1, 3, 20])),
    st.tuples(st.just("crash")),
)


class Side:
    """One of the two hubs, and its clients."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.clients: dict[str, Client] = {}
        self.unanswered: dict[str, list[Any]] = {}
        self.ahead_s = 0.0  # of the test's time

    def do(self, step: Step, at_s: float, number: int) -> None:
        now_s = at_s + self.ahead_s
        for each in self.clients.values():
            each.now_s = now_s
        if step[0] == "wait":
            self.hub.tick(now_s)
        elif step[0] == "connect":
            self._connect(step, now_s)
        elif step[1] in self.clients:
            self._do_as(self.clients[step[1]], step, number)

    def heard(self) -> dict[str, list[Any]]:
        """Return what each client got since the last time."""
        heard = {}
        for name, client in list(self.clients.items()):
            packets = client.first + client.read()
            client.first = []
            self.unanswered[name] += [
                each for each in packets if isinstance(each, mqtt5.PublishPacket | mqtt5.PubRelPacket)
            ]
            heard[name] = [facts(each) for each in packets]
            if client.connection.closing:
                del self.clients[name]
        return heard

    def _connect(self, step: Step, now_s: float) -> None:
        _, name, clean, expiry_s, receive_max, delay_s = step
        will = None
        if delay_s is not None and expiry_s:  # a will without delay would be spoken while others still listen
            will = mqtt5.Will("a", payload=name.encode(), qos=mqtt5.QoS(1), will_delay_interval=delay_s)
        self.unanswered[name] = []
        client = self.clients[name] = Client(
            self.hub,
            name,
            now_s=now_s,
            clean_start=clean,
            session_expiry_interval=expiry_s,
            receive_max=receive_max,
            will=will,
        )
        client.first.insert(0, client.connack)

    def _do_as(self, client: Client, step: Step, number: int) -> None:
        match step:
            case ("subscribe", _, pattern, qos, wish):
                topic_filter = mqtt5.TopicFilter(pattern, max_qos=mqtt5.QoS(qos), retain_as_published=True)
                identifier = ("a", "+", "r").index(pattern) + 1
                properties = list(wish.items())
                client.send(
                    mqtt5.SubscribePacket(
                        1, [topic_filter], subscription_id=identifier, user_properties=properties
                    )
                )
            case ("unsubscribe", _, pattern):
                client.send(mqtt5.UnsubscribePacket(2, [pattern]))
            case ("publish", _, topic, qos, expiry_s, packet_id):
                client.send(
                    mqtt5.PublishPacket(
                        topic,
                        str(number).encode(),
                        qos=mqtt5.QoS(qos),
                        retain=topic == "r",
                        packet_id=packet_id,
                        message_expiry_interval=expiry_s,
                        user_properties=[("speed", str(number % 10))],
                    )
                )
            case ("release", _, packet_id):
                client.send(mqtt5.PubRelPacket(packet_id))
            case ("answer", name):
                if self.unanswered[name]:
                    client.send(answer(self.unanswered[name].pop(0)))
            case ("disconnect", _, expiry_s):
                client.send(mqtt5.DisconnectPacket(session_expiry_interval=expiry_s))
            case ("lose", name):
                client.connection.lost(client.now_s)
                del self.clients[name]


def answer(packet: Any) -> mqtt5.Packet:
    if isinstance(packet, mqtt5.PubRelPacket):
        return mqtt5.PubCompPacket(packet.packet_id)
    assert packet.packet_id is not None
    kind = mqtt5.PubAckPacket if packet.qos.value == 1 else mqtt5.PubRecPacket
    return kind(packet.packet_id)


def facts(packet: Any) -> tuple[Any, ...]:
    """Return what a client sees of a packet, but for packet ids and the numbers of messages."""
    if not isinstance(packet, mqtt5.PublishPacket):
        code = getattr(packet, "reason_code", None)
        present = getattr(packet, "session_present", None)
        return type(packet).__name__, None if code is None else code.value, present
    properties = tuple(each for each in packet.user_properties if each[0] != "$id")
    return (
        packet.topic,
        packet.payload,
        packet.qos.value,
        packet.duplicate,
        packet.retain,
        tuple(sorted(packet.subscription_ids)),
        packet.message_expiry_interval,
        properties,
    )


class Pair:
    """A hub with a store, and one that never stops."""

    def __init__(self) -> None:
        self.at_s = 0.0
        self.shelf = Shelf()
        hub, self.store = kept_hub(self.shelf)
        self.kept, self.lasting = Side(hub), Side(new_hub())

    def step(self, step: Step, number: int, *, crash_first: bool) -> None:
        """Let something happen on both sides; most of what can happen happens to who is there."""
        if step[0] not in ("connect", "wait", "crash") and step[1] not in self.kept.clients:
            self.step(("connect", step[1], False, 60, 2, None), number, crash_first=False)
        self.at_s += STEP_S + (step[1] if step[0] == "wait" else 0)
        if step[0] == "crash":
            self.crash()
            return
        self.kept.do(step, self.at_s, number)
        if crash_first:
            self.crash()
            return
        self.store.commit()
        self.lasting.do(step, self.at_s, number)
        assert self.kept.heard() == self.lasting.heard()
        self.check_rows()

    def crash(self) -> None:
        self.at_s += STEP_S
        for _, client in sorted(self.lasting.clients.items()):
            client.connection.lost(self.at_s)
        self.lasting.hub.tick(self.at_s)
        self.lasting.clients.clear()
        self.kept = Side(self.kept.hub)
        self.kept.ahead_s = 1000.0 - self.at_s  # the server's own clock begins anew
        hub, self.store = kept_hub(self.shelf, now_s=1000.0, wall_s=EPOCH_S + self.at_s)
        self.kept.hub = hub
        self.check_rows()

    def check_rows(self) -> None:
        """See that exactly what is owed lies on the shelf."""
        durable = [each for each in self.kept.hub.sessions.values() if each.expiry_s]
        owed = [each for session in durable for each in session.owed()]
        needed = {each.publication for each in owed} | set(
            self.kept.hub.publishing.retained._by_topic.values()
        )
        assert self.shelf.count("sessions") == len(durable)
        assert self.shelf.count("subscriptions") == sum(len(each.subscriptions) for each in durable)
        assert self.shelf.count("incoming") == sum(len(each.incoming) for each in durable)
        assert self.shelf.count("deliveries") == len(owed)
        assert self.shelf.count("publications") == len(needed)

    def settle(self) -> None:
        """Have everybody come back and take all that is owed."""
        self.crash()
        for name in NAMES:
            self.step(("connect", name, False, FOR_EVER, 2, None), 0, crash_first=False)
        for _ in range(3 * STEPS_MAX):
            for name in NAMES:
                if self.kept.unanswered[name]:
                    self.step(("answer", name), 0, crash_first=False)
        assert not any(self.kept.unanswered.values())


crashes = st.sampled_from([False] * 9 + [True])


@pytest.mark.long
@given(st.lists(st.tuples(steps, crashes), min_size=STEPS_MAX // 2, max_size=STEPS_MAX))
def test_a_hub_that_crashes_behaves_like_one_that_only_loses_its_connections(history):
    pair = Pair()
    for name in NAMES:
        pair.step(("subscribe", name, "a", 2, {}), 0, crash_first=False)
    for number, (step, crash_first) in enumerate(history):
        pair.step(step, number, crash_first=crash_first)
    pair.settle()
