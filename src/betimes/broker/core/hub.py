"""The state that all connections of a broker share: sessions, subscriptions, retained messages and wills.

Sans-I/O: time is an argument, and what is to be sent lies in outboxes, which the driver writes. Everything
that is not needed by every broker is an extension (`core/extension.py`); the network is behind
`core/network.py`. Two parts are called directly, because every publication passes them: the telemetry
`recorder` and the `replay` buffer; either may be missing.
"""

from __future__ import annotations

import math
from collections import deque

import mqtt5

from betimes.broker.access.acl import NO_RIGHTS
from betimes.broker.access.authentication import AccessControl
from betimes.broker.core.connection import Connection
from betimes.broker.core.extension import Decision, Extension, GoOn
from betimes.broker.core.network import Network
from betimes.broker.core.publish import Publishing
from betimes.broker.core.subscribe_request import SubscribeRequest
from betimes.broker.delivery.accounts import Account, Accounts
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.gaps import MissedMessages
from betimes.broker.delivery.memory_account import (
    SESSION_BYTES,
    MemoryAccounts,
    UserMemory,
    subscription_bytes,
    will_bytes,
)
from betimes.broker.delivery.outbox import Outboxes
from betimes.broker.delivery.queue_room import QueueRoom
from betimes.broker.delivery.rate_limit import TokenBucket
from betimes.broker.delivery.retained import Note
from betimes.broker.delivery.scheduled_queue import ScheduledQueue
from betimes.broker.delivery.session import BrokerSubscription, Session
from betimes.broker.delivery.telemetry_recorder import TelemetryRecorder
from betimes.broker.delivery.timers import Timers
from betimes.broker.delivery.wills import PendingWill, Wills, will_packet
from betimes.broker.replay.buffer import ReplayBuffer
from betimes.broker.storage.change_tables import Table
from betimes.model.server_settings import Limits
from betimes.model.telemetry import Reason
from betimes.mqtt.reason_codes import DisconnectCode, PublishCode, Refusal, expiry_seconds

_AT_MOST_ONCE = mqtt5.QoS.AT_MOST_ONCE
ANNOUNCED_MAX, ANNOUNCED_BYTES_MAX = 1000, 1_000_000
ENDED_AT_ONCE = 3_000  # sessions and their subscriptions that end in one tick
REMOVED_AT_ONCE = 500  # subscriptions of ended sessions that leave the tree of topic filters in one turn
CONTROL_TOPICS = "$betimes/"


class Hub:
    """What one broker knows; it numbers publications from `first_number`, which no earlier life reached."""

    def __init__(
        self,
        name: str,
        *,
        access_control: AccessControl,
        limits: Limits | None = None,
        first_number: int = 1,
        recorder: TelemetryRecorder | None = None,
        replay: ReplayBuffer | None = None,
        keys_table: Table | None = None,
        note_retained: Note | None = None,
    ) -> None:
        self.name = name
        self.access_control = access_control
        self.limits = limits or Limits()
        self.memory = MemoryAccounts(self.limits.memory_bytes_max)
        self.sessions: dict[str, Session] = {}
        self.outboxes = Outboxes()
        self.counters = self.outboxes.counters
        self.network = Network()
        self.recorder = recorder
        self.replay = replay
        self.publishing = Publishing(
            name,
            limits=self.limits,
            counters=self.counters,
            control=self._control,
            first_number=first_number,
            recorder=recorder,
            replay=replay,
            keys_table=keys_table,
            note_retained=note_retained,
        )
        self._accounts = Accounts(access_control.accounts, has_users=access_control.passwords is not None)
        self._queue_room = QueueRoom(self.limits.queues_bytes_max)
        self._extensions: list[Extension] = []
        self._leaving: deque[BrokerSubscription] = deque()  # of ended sessions, still in the tree
        self._wills = Wills()
        self._silent: Timers[Connection] = Timers()
        self._ending: Timers[str] = Timers()  # sessions without a connection, by client id

    def extend(self, extension: Extension) -> None:
        """Add an extension, behind those that are there."""
        self._extensions.append(extension)

    def join(self, network: Network) -> None:
        """Become part of a network: it hears of the subscriptions that are there, and of all that follow."""
        assert self.network.is_alone, "a broker joins one network"
        self.network = network
        self.publishing.join(network)
        for session in self.sessions.values():  # those that survived a restart
            for subscription in session.subscriptions.values():
                network.subscribed(subscription)

    @property
    def next_number(self) -> int:
        """Return the number of the next publication."""
        return self.publishing.next_number

    def lose(self, delivery: Delivery, reason: Reason, now_s: float) -> None:
        """Note that a client does not get something."""
        self.publishing.lose(delivery, reason, now_s)

    @property
    def held(self) -> tuple[int, int]:
        """Return how many subscriptions and retained messages of clients there are."""
        return self.publishing.fan_out.tree.count, len(self.publishing.retained)

    # --- connections and sessions

    def account_of(self, user: str | None) -> Account:
        """Return the account of a user; None: of all clients without one."""
        return self._accounts.of(user)

    def memory_of(self, user: str | None) -> UserMemory:
        """Return what the clients of a user's account take of memory, and may take."""
        account, usual = self.account_of(user), self.limits.user_memory_bytes_max
        granted = account.grants.memory_bytes_max
        return self.memory.of(account.name, usual if granted is None else granted)

    def may_connect(
        self,
        connection: Connection,
        packet: mqtt5.ConnectPacket,
        client_id: str,
        user: str | None,
        now_s: float,
    ) -> bool:
        """Tell whether a CONNECT goes on; an extension may refuse it, or hold it."""
        for extension in self._extensions:
            if not extension.connecting(connection, packet, client_id, user, now_s):
                return False
        return True

    def open_session(
        self,
        connection: Connection,
        packet: mqtt5.ConnectPacket,
        client_id: str,
        user: str | None,
        keep_alive_s: int,
        now_s: float,
    ) -> tuple[Session, bool]:
        """Return the session of a client that is let in, and whether it was there before."""
        old = self.sessions.get(client_id)
        if old is not None and old.connection is not None:
            old.connection.hang_up(Refusal(DisconnectCode.SESSION_TAKEN_OVER.value), now_s)
            old = self.sessions.get(client_id)  # it may have ended with its connection
        if old is not None and packet.clean_start:
            self._end(old, now_s)
            old = None
        self._wills.take(client_id)
        self._ending.discard(client_id)
        session = self.new_session(client_id, user) if old is None else old
        session.connection = connection
        session.expiry_s = self.bounded_expiry_s(expiry_seconds(packet.session_expiry_interval))
        self._charge_will(session, will_bytes(packet.will))
        connection.begin(session, packet, keep_alive_s)
        for extension in self._extensions:
            extension.session_opened(session, packet.will, now_s)
        if keep_alive_s:
            self._silent.set(connection, connection.silent_at_s())
        return session, old is not None

    def client_came(self, session: Session, packet: mqtt5.ConnectPacket, now_s: float) -> None:
        """Tell extensions that a client was let in."""
        for extension in self._extensions:
            extension.client_came(session, packet, now_s)

    def has_room_for(self, packet: mqtt5.ConnectPacket, client_id: str, user: str | None) -> bool:
        """Tell whether the user of a CONNECT has room for its session and its will."""
        old = self.sessions.get(client_id)
        known = 0 if old is None else SESSION_BYTES + old.will_bytes
        return self.memory_of(user).fits(SESSION_BYTES + will_bytes(packet.will) - known)

    @staticmethod
    def _charge_will(session: Session, size: int) -> None:
        session.memory.charge(size - session.will_bytes)
        session.will_bytes = size

    def bounded_expiry_s(self, expiry_s: float) -> float:
        """Return how long a session outlives its connection, within the limits."""
        return min(expiry_s, self.limits.session_expiry_s_max)

    def disconnected(self, connection: Connection, now_s: float, *, with_will: bool) -> None:
        """Note that a connection has ended, and with it perhaps the session."""
        self._silent.discard(connection)
        if connection.link is not None:
            connection.link.lost(now_s)
        session = connection.session
        if session is None or session.connection is not connection:
            return
        session.connection = None
        will = connection.will if with_will else None
        for extension in self._extensions:
            extension.client_left(session, will, now_s)
        if self.replay is not None:
            self.replay.client_left(session, now_s)
        if will is not None:
            self.put_will(PendingWill(will=will, session=session), now_s + will.will_delay_interval)
        if session.expiry_s == 0.0:
            self._end(session, now_s)
        else:
            self.schedule_end(session, now_s + session.expiry_s)
        self._publish_due_wills(now_s)

    def tick(self, now_s: float) -> None:
        """Do what is due: end silent connections and expired sessions, publish delayed wills."""
        for connection in self._silent.pop_due(now_s):
            silent_at_s = connection.silent_at_s()
            if now_s > silent_at_s:
                connection.hang_up(Refusal(DisconnectCode.KEEP_ALIVE_TIMEOUT.value), now_s)
            else:
                self._silent.set(connection, math.nextafter(silent_at_s, math.inf))
        units = 0
        for client_id in self._ending.pop_due(now_s):
            session = self.sessions[client_id]
            units += 1 + len(session.subscriptions)
            self._end(session, now_s)
            if units >= ENDED_AT_ONCE:
                break  # the others at the next tick
        self._remove_leaving()
        self._publish_due_wills(now_s)
        for account in self._accounts.review(now_s):
            self.network.repriced(account)
        self.memory.forget(self._accounts.take_idle())
        self.network.tick(now_s)
        for extension in self._extensions:
            extension.tick(now_s)

    def shut_down(self, now_s: float) -> None:
        """Leave the network, and disconnect all clients."""
        self.network.close(now_s)
        for session in list(self.sessions.values()):
            if session.connection is not None:
                session.connection.hang_up(Refusal(DisconnectCode.SERVER_SHUTTING_DOWN.value), now_s)

    def change_access_control(self, access_control: AccessControl, now_s: float) -> int:
        """Apply new passwords and a new access list, also to connected clients; return how many were cut off.

        Rights are those of the new access list from the next message on. A user that the password file names
        no more is disconnected, and its sessions end; one with a new password stays, and needs it next time.
        """
        self.access_control = access_control
        self._accounts.change(access_control.accounts, has_users=access_control.passwords is not None)
        cut_off = 0
        for session in list(self.sessions.values()):
            self._charge_to(session, self.account_of(session.user))
            session.rights = access_control.rights(session.user, session.client_id)
            connection, user = session.connection, session.user
            if user is None or (access_control.passwords is not None and user in access_control.passwords):
                continue
            session.expiry_s = 0.0
            if connection is None:
                self.counters.lost[Reason.REFUSED] += self._wills.take(session.client_id) is not None
                self._end(session, now_s)
            else:
                text = "this user is not known any more"
                connection.hang_up(Refusal(DisconnectCode.NOT_AUTHORIZED.value, text), now_s)
                cut_off += 1
        for account in self._accounts:
            self.network.repriced(account)
        return cut_off

    def _charge_to(self, session: Session, account: Account) -> None:
        """Let another account bear a session: its user is in another group by now."""
        if session.account is account:
            return
        for subscription in session.subscriptions.values():
            self.network.unsubscribed(subscription)
        for each, sign in ((session.account, -1), (account, 1)):
            each.sessions += sign
            each.subscriptions += sign * len(session.subscriptions)
        session.account = account
        if session.connection is not None:
            session.connection.account = account
        for subscription in session.subscriptions.values():
            self.network.subscribed(subscription)

    # --- for restoring and handing over sessions (`SessionPort`)

    def new_session(self, client_id: str, user: str | None) -> Session:
        """Return a new session, which waits for its client."""
        session = Session(
            client_id,
            user=user,
            account=self.account_of(user),
            queue_bytes_max=self.limits.queue_bytes_max,
            room=self._queue_room,
            lose=self.publishing.lose,
            recorder=self.recorder,
            backpressure=self.outboxes.backpressure,
            memory=self.memory_of(user),
        )
        session.memory.charge(SESSION_BYTES)
        if self.limits.publications_per_s_max < math.inf:
            session.pace = TokenBucket(self.limits.publications_per_s_max)
        session.rights = self.access_control.rights(user, client_id)
        self.sessions[client_id] = session
        session.account.sessions += 1
        return session

    def adopt(self, client_id: str, user: str | None, expiry_s: float, now_s: float) -> Session:
        """Return a new session for a client that was at another broker; it waits for its client."""
        session = self.new_session(client_id, user)
        session.expiry_s = self.bounded_expiry_s(expiry_s)
        for extension in self._extensions:
            extension.session_opened(session, None, now_s)
            extension.client_left(session, None, now_s)
        self.schedule_end(session, now_s + session.expiry_s)
        return session

    def release(self, session: Session, now_s: float) -> None:
        """Have a session no longer: it is at another broker. Its subscriptions stay, for what still comes."""
        for extension in self._extensions:
            extension.session_ended(session, now_s)
        self._wills.take(session.client_id)
        self._ending.discard(session.client_id)
        self.forget(session)

    def forget(self, session: Session) -> None:
        """Have a session no longer, and charge its user no more for it; it may go on under another id."""
        del self.sessions[session.client_id]
        session.account.sessions -= 1
        session.account.subscriptions -= len(session.subscriptions)
        self.outboxes.backpressure.forget(session)
        self._charge_will(session, 0)
        subscriptions = sum(map(subscription_bytes, session.subscriptions.values()))
        session.memory.charge(-SESSION_BYTES - subscriptions)

    def schedule_end(self, session: Session, at_s: float) -> None:
        """End a session without a connection at a time; inf: never."""
        if at_s < math.inf:
            self._ending.set(session.client_id, at_s)

    def put_will(self, word: PendingWill, due_s: float) -> None:
        """Publish a will at a time, unless its client comes back before."""
        self._wills.put(word, due_s)

    # --- subscriptions

    def decide(self, connection: Connection, request: SubscribeRequest, go_on: GoOn, now_s: float) -> bool:
        """Have an extension decide on a SUBSCRIBE that asks for a guarantee; False: none does."""
        return any(each.decide(connection, request, go_on, now_s) for each in self._extensions)

    def admit(self, subscription: BrokerSubscription, now_s: float) -> Decision | None:
        """Return what an extension decides on one subscription; None: nothing is against it."""
        for extension in self._extensions:
            decision = extension.admit(subscription, now_s)
            if decision is not None:
                return decision
        return None

    def subscribe(self, written: str, subscription: BrokerSubscription, now_s: float) -> None:
        """Take in a subscription in place of an older one with the same topic filter."""
        session = subscription.session
        self.unsubscribe(session, written, now_s)
        session.subscriptions[written] = subscription
        session.account.subscriptions += 1
        session.memory.charge(subscription_bytes(subscription))
        self.publishing.fan_out.tree.add(subscription)
        if session.scheduled is None and subscription.is_scheduled:
            session.scheduled = ScheduledQueue()
        if session.missed is None and subscription.options is not None and subscription.options.resumes:
            session.missed = MissedMessages(self.name, session.client_id)
        self.network.subscribed(subscription)
        for extension in self._extensions:
            extension.subscribed(written, subscription, now_s)
        if self.recorder is not None:
            self.recorder.subscribed(written, subscription, now_s)

    def unsubscribe(self, session: Session, written: str, now_s: float) -> bool:
        """Forget a subscription; tell whether there was one."""
        if written not in session.subscriptions:
            return False
        self._remove(self._cancel(session, written, now_s))
        return True

    def _remove(self, subscription: BrokerSubscription) -> None:
        self.publishing.fan_out.tree.remove(subscription)
        subscription.session.memory.charge(-subscription_bytes(subscription))

    def _remove_leaving(self) -> None:
        for _ in range(min(len(self._leaving), REMOVED_AT_ONCE)):
            self._remove(self._leaving.popleft())

    def _cancel(self, session: Session, written: str, now_s: float) -> BrokerSubscription:
        """Tell all that a subscription is gone, but leave it in the tree."""
        subscription = session.subscriptions.pop(written)
        session.account.subscriptions -= 1
        self.network.unsubscribed(subscription)
        for extension in self._extensions:
            extension.unsubscribed(written, subscription, now_s)
        if self.recorder is not None:
            self.recorder.unsubscribed(session.client_id, written, now_s)
        return subscription

    def _control(self, packet: mqtt5.PublishPacket, topic: str, now_s: float) -> PublishCode | None:
        """Take in what the control centre publishes below $betimes; None: it is for no extension."""
        if not topic.startswith(CONTROL_TOPICS):
            return None
        codes = (each.control(packet, topic, now_s) for each in self._extensions)
        return next((code for code in codes if code is not None), None)

    # --- ends

    def _end(self, session: Session, now_s: float) -> None:
        """Forget a session, unless it is forgotten; a will that waited for that is due.

        Ticks take its subscriptions out of the tree, some at a time; an ended session has no right to read.
        """
        if self.sessions.get(session.client_id) is not session:
            return
        for extension in self._extensions:
            extension.session_ended(session, now_s)
        word = self._wills.take(session.client_id)
        is_refused = word is not None and word.refusal() is not None
        session.rights = NO_RIGHTS
        self._leaving += [self._cancel(session, written, now_s) for written in list(session.subscriptions)]
        self._remove_leaving()
        self.forget(session)
        self._ending.discard(session.client_id)
        for delivery in session.end(now_s):
            self.publishing.fan_out.pass_on(delivery, now_s)
        if word is not None:
            self._publish_will(word, now_s, is_refused=is_refused)

    def _publish_due_wills(self, now_s: float) -> None:
        for word in self._wills.take_due(now_s):
            self._publish_will(word, now_s, is_refused=word.refusal() is not None)

    def _publish_will(self, word: PendingWill, now_s: float, *, is_refused: bool) -> None:
        for extension in self._extensions:
            extension.will_published(word.client_id)
        if is_refused:
            self.counters.lost[Reason.REFUSED] += 1
        else:
            packet, topic = will_packet(word.will), word.will.topic
            self.publishing.take_in(packet, topic, word.client_id, now_s, word.session.memory)
            if self.replay is not None:
                self.replay.close_run(word.client_id, None, now_s)
