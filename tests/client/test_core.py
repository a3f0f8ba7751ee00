"""Does a client, without a socket and without a clock, go from broker to broker as its policy says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mqtt5
import pytest
from tests.broker.talking import new_hub

from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.connection import Connection
from betimes.broker.core.handlers import PacketHandlers
from betimes.broker.core.hub import Hub
from betimes.client.addresses import read_address
from betimes.client.core import LIVES, ClientCore, Life
from betimes.client.effects import Answer, AwaitAnswer, Dial, Flow, HangUp, Wait
from betimes.client.errors import ConnectionLostError, LoginRefusedError, UnreachableError
from betimes.client.request import SubscribeCall
from betimes.client.settings import read_settings
from betimes.client.subscription_buffer import SubscriptionBuffer
from betimes.model.errors import BetimesError


class Waiter:
    def __init__(self) -> None:
        self.answers: list[Answer | None] = []

    def done(self) -> bool:
        return bool(self.answers)

    def set_result(self, answer: Answer | None, /) -> None:
        self.answers.append(answer)


class Buffer(SubscriptionBuffer):
    def __init__(self, asked: SubscribeCall, *, buffer: int) -> None:
        super().__init__(asked, buffer=buffer)
        self.wakes = 0

    def wake(self) -> None:
        self.wakes += 1

    def texts(self) -> list[str]:
        found = []
        while (message := self.next_waiting(0.0)) is not None:
            found.append(message.payload.decode())
        return found


class MemoryClient(ClientCore[Buffer]):
    """A driver whose brokers are hubs of this process, and whose time moves with its pauses."""

    def __init__(self, hubs: dict[str, Hub | None], **options: Any) -> None:
        self.hubs = hubs  # by host; None: it is down
        self.clock_s = 0.0
        self.dialled: list[str] = []
        self.pauses: list[float] = []
        self.reconnects = 0
        self._remote: Connection | None = None
        addresses = [read_address(f"mqtt://{host}?client_id=c") for host in hubs]
        super().__init__(read_settings(addresses, **options), now_s=lambda: self.clock_s, new_waiter=Waiter)

    def _new_subscription(self, asked: SubscribeCall, buffer: int) -> Buffer:
        return Buffer(asked, buffer=buffer)

    def _begin_reconnecting(self) -> None:
        self.reconnects += 1

    def run(self, flow: Flow) -> None:
        answer: Answer | None = None
        error: BetimesError | None = None
        while True:
            try:
                effect = flow.send(answer) if error is None else flow.throw(error)
            except StopIteration:
                return
            answer = error = None
            try:
                answer = self._perform(effect)
            except BetimesError as raised:
                error = raised

    def _perform(self, effect: Any) -> Answer | None:
        if isinstance(effect, Dial):
            self._dial(effect)
        elif isinstance(effect, Wait):
            self.pauses.append(effect.pause_s)
            self.clock_s += effect.pause_s
        elif isinstance(effect, HangUp):
            self.carry()
            self._remote = None
        else:
            self.carry()
        if isinstance(effect, AwaitAnswer):
            assert isinstance(effect.waiter, Waiter)
            if not effect.waiter.answers:
                raise self._connection.silent()
            if effect.waiter.answers[0] is None:
                raise self._connection.lost()
            return effect.waiter.answers[0]
        return None

    def _dial(self, dial: Dial) -> None:
        host = dial.place.address.host
        self.dialled.append(host)
        hub = self.hubs[host]
        if hub is None:
            raise dial.connection.unreachable("down")
        self._remote = Connection(PacketHandlers(hub), peer="c", now_s=0.0)
        dial.connection.start(self.clock_s)
        self.carry()
        dial.connection.check_open()

    def carry(self) -> None:
        """Carry bytes both ways until there are no more."""
        remote = self._remote
        while remote is not None:
            out, back = self._connection.take_outbox(self.clock_s), remote.take_outbox()
            if not out and not back:
                return
            remote.receive(out, self.clock_s)
            self._connection.receive(back, self.clock_s)

    def cut(self) -> None:
        assert self._remote is not None
        self._remote.lost(self.clock_s)
        self._remote = None
        self._connection.broke()

    def opened(self, topic: str, **options: Any) -> Buffer:
        subscription = self.subscribe(topic, **options)
        self.run(self.opening_subscription(subscription))
        return subscription

    def open(self) -> MemoryClient:
        self.run(self._opening())
        return self

    def reconnect(self) -> None:
        self.run(self._reconnecting())

    def close(self) -> None:
        self.run(self._closing())


def say(hub: Hub, text: str, qos: int = 1) -> None:
    """Publish at a hub, as another client."""
    other = Connection(PacketHandlers(hub), peer="other", now_s=0.0)
    connect = mqtt5.ConnectPacket("other", clean_start=True)
    packet = mqtt5.PublishPacket("t", text.encode(), qos=mqtt5.QoS(qos), packet_id=1 if qos else None)
    other.receive(connect.write() + packet.write() + mqtt5.DisconnectPacket().write(), 0.0)


def test_the_first_broker_that_can_be_reached_is_taken_and_if_none_can_the_last_error_is_raised():
    client = MemoryClient({"a": None, "b": new_hub(), "c": new_hub()}).open()
    assert (client.dialled, client.life) == (["a", "b"], Life.OPEN)
    with pytest.raises(UnreachableError, match="mqtt://b:1883: cannot be reached"):
        MemoryClient({"a": None, "b": None}).open()


def test_messages_go_to_their_subscriptions_and_what_overlaps_to_both():
    hub = new_hub()
    client = MemoryClient({"a": hub}).open()
    one, two, none = client.opened("t"), client.opened("#"), client.opened("u")
    say(hub, "x")
    client.carry()
    assert (one.texts(), two.texts(), none.texts()) == (["x"], ["x"], [])
    client.run(client.closing_subscription(one))
    say(hub, "y")
    client.carry()
    assert (one.texts(), two.texts()) == ([], ["y"])


def test_a_lost_connection_without_reconnect_is_told_to_whatever_waits():
    client = MemoryClient({"a": new_hub()}).open()
    subscription = client.opened("t")
    before = subscription.wakes
    client.cut()
    assert client.life is Life.LOST
    assert subscription.wakes > before
    with pytest.raises(ConnectionLostError, match="the broker closed it"):
        client.is_closed()
    client.close()
    assert not client.reconnects


def test_a_lost_connection_is_opened_again_at_the_next_broker_with_all_subscriptions():
    hubs: dict[str, Hub | None] = {"a": new_hub(), "b": None, "c": new_hub()}
    client = MemoryClient(hubs, reconnect="10s").open()
    subscription, closed = client.opened("t"), client.opened("u")
    client.run(client.closing_subscription(closed))
    client.cut()
    assert (client.life, client.reconnects, client.is_closed()) == (Life.RECONNECTING, 1, False)
    client.reconnect()
    assert (client.dialled, client.life) == (["a", "b", "c"], Life.OPEN)
    hub = hubs["c"]
    assert hub is not None
    assert list(hub.sessions["c"].subscriptions) == ["t"]
    say(hub, "again")
    client.carry()
    assert subscription.texts() == ["again"]


def test_attempts_come_ever_later_and_end_in_time():
    client = MemoryClient({"a": new_hub()}, reconnect="10s").open()
    client.hubs["a"] = None
    client.cut()
    client.reconnect()
    assert client.pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2]
    assert client.life is Life.LOST
    with pytest.raises(UnreachableError):
        client.is_closed()


def test_a_broker_that_rejects_the_login_is_not_asked_again():
    client = MemoryClient({"a": new_hub()}, reconnect="10s").open()
    client.hubs["a"] = new_hub(access_control=AccessControl(anonymous=False))
    client.cut()
    client.reconnect()
    assert client.pauses == []
    with pytest.raises(LoginRefusedError):
        client.is_closed()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_keeps_what_is_published_while_the_connection_is_lost(qos):
    hub = new_hub()
    client = MemoryClient({"a": hub}, reconnect="10s", session="1h").open()
    subscription = client.opened("t", mode="durable", qos=qos)
    client.cut()
    say(hub, "missed", qos)
    client.reconnect()
    client.carry()
    assert subscription.texts() == ["missed"]
    client.close()
    assert not hub.sessions  # closed by the program: the session ends too


def test_what_was_published_and_not_answered_is_sent_again_in_the_session_once():
    hub = new_hub()
    client = MemoryClient({"a": hub}, reconnect="10s", session="1h").open()
    listener = Connection(PacketHandlers(hub), peer="l", now_s=0.0)
    listener.receive(mqtt5.ConnectPacket("l", clean_start=True).write(), 0.0)
    listener.receive(mqtt5.SubscribePacket(1, [mqtt5.TopicFilter("t")]).write(), 0.0)
    listener.take_outbox()
    client._connection.publish("t", b"x", [], qos=2, retain=False)
    assert client._remote is not None
    client._remote.receive(client._connection.take_outbox(0.0), 0.0)  # its PUBREC gets lost
    client.cut()
    client.reconnect()
    client.carry()
    packets = listener.take_outbox()
    assert packets.count(b"\x00\x01t") == 1
    assert not client._session.in_flight


def test_only_the_table_moves_a_client():
    for life, others in LIVES.items():
        assert life not in others
    assert LIVES[Life.CLOSED] == set()
    client = MemoryClient({"a": new_hub()}).open()
    client.close()
    assert client.is_closed()
    with pytest.raises(AssertionError, match="CLOSED cannot be OPEN"):
        client._move(Life.OPEN)


def test_a_connection_that_breaks_while_the_last_answer_is_on_its_way_is_noticed():
    client = MemoryClient({"a": new_hub()}, reconnect="10s").open()
    client.opened("t")
    client.cut()
    flow = client._reconnecting()
    effects: list[Any] = []
    answer: Answer | None = None
    while True:
        try:
            effects.append(flow.send(answer))
        except StopIteration:
            break
        answer = client._perform(effects[-1])
        if isinstance(effects[-1], AwaitAnswer):
            client.cut()
    assert (client.life, client.reconnects) == (Life.RECONNECTING, 2)


def test_gaps_and_reservations_are_for_the_subscription_not_for_the_program():
    client = MemoryClient({"a": new_hub()}).open()
    subscription = client.opened("t")
    take: Callable[[mqtt5.PublishPacket], None] = client._take
    gap = b'{"origin": "b1", "first": 1, "last": 7, "at_most": 7, "why": "overwritten"}'
    take(mqtt5.PublishPacket("$betimes/gap/c", gap, subscription_ids=[1]))
    take(mqtt5.PublishPacket("$betimes/reservation/c", b'{"topic": "t", "state": "refused", "why": "x"}'))
    take(mqtt5.PublishPacket("$betimes/reservation/c", b"nonsense"))
    assert [(each.first, each.last) for each in subscription.gaps] == [(1, 7)]
    assert [(each.state, each.why) for each in subscription.reservations] == [("refused", "x")]
    assert subscription.texts() == []
