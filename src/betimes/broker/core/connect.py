"""CONNECT: authentication, taking over the session, CONNACK (MQTT 5, sections 3.1 and 3.2)."""

from __future__ import annotations

import math
import secrets

import mqtt5

from betimes.broker.core.connection import Connection
from betimes.broker.core.hub import Hub
from betimes.broker.delivery.denials import DenialKind
from betimes.broker.delivery.session import Session
from betimes.model.server_settings import Limits
from betimes.mqtt.reason_codes import NEVER_EXPIRES, ConnectCode, DisconnectCode, Refusal, expiry_seconds

LINK = "$betimes-link"  # a user property of a CONNECT that comes from a broker or a peer, not from a client


def handle_connect(hub: Hub, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
    """Let a client in, or answer why not; hand the CONNECT of a broker to the network."""
    connection.tells_why = packet.request_problem_info
    if packet.max_packet_size is not None:
        connection.packet_bytes_max = packet.max_packet_size
    letters_max = hub.limits.client_id_letters_max
    if any(name == LINK for name, _ in packet.user_properties):
        hub.network.answer(connection, packet, now_s)
    elif packet.authentication_method is not None:
        text = "only user names and passwords are known here"
        connection.refuse(ConnectCode.BAD_AUTHENTICATION_METHOD, text)
    elif len(packet.client_id) > letters_max:
        connection.refuse(ConnectCode.CLIENT_ID_NOT_VALID, f"at most {letters_max} letters")
    else:
        admitted = hub.access_control.admits(packet.username, packet.password)
        if admitted is None:
            connection.hold(packet)
        elif admitted:
            admit(hub, connection, packet, now_s)
        else:
            connection.deny_login(packet, now_s)


def _refuse_beyond_quota(
    hub: Hub, connection: Connection, client_id: str, problem: str, now_s: float
) -> None:
    hub.counters.denials.note(DenialKind.QUOTA, client_id, problem, now_s)
    connection.refuse(ConnectCode.QUOTA_EXCEEDED, problem)


def admit(hub: Hub, connection: Connection, packet: mqtt5.ConnectPacket, now_s: float) -> None:
    """Open or take over the session of an authenticated client."""
    assigned = None if packet.client_id else f"auto-{secrets.token_hex(8)}"
    client_id = assigned or packet.client_id
    user = hub.access_control.proven_user(packet.username)
    old = hub.sessions.get(client_id)
    if old is None and len(hub.sessions) >= hub.limits.sessions_max:
        connection.refuse(ConnectCode.SERVER_BUSY, "too many sessions")
        return
    account = hub.account_of(user)
    if old is None and account.sessions >= account.grants.sessions_max:
        text = f"{account.spoken} has {account.grants.sessions_max:,} sessions, which is all it may have"
        _refuse_beyond_quota(hub, connection, client_id, text, now_s)
        return
    if not hub.has_room_for(packet, client_id, user):
        _refuse_beyond_quota(hub, connection, client_id, hub.memory_of(user).problem, now_s)
        return
    if not hub.may_connect(connection, packet, client_id, user, now_s):
        return
    if old is not None and old.user != user:  # what waits in the session is not for every client's eyes
        connection.refuse(ConnectCode.NOT_AUTHORIZED, "this client id is another user's")
        return
    keep_alive_s = keep_alive_for(connection, packet, hub.limits)
    session, is_known = hub.open_session(connection, packet, client_id, user, keep_alive_s, now_s)
    connack = connack_for(session, packet, hub.limits, assigned, keep_alive_s, is_known=is_known)
    if not connection.send(connack):
        connection.hang_up(Refusal(DisconnectCode.PACKET_TOO_LARGE.value), now_s)
        return
    session.resume(packet.receive_max, now_s)
    hub.client_came(session, packet, now_s)


def keep_alive_for(connection: Connection, packet: mqtt5.ConnectPacket, limits: Limits) -> int:
    """Return the keep alive that holds, in seconds; 0 is none, which is allowed where every other is."""
    most, asked = limits.keep_alive_s_max, packet.keep_alive
    if connection.wire.version != 5:
        return asked  # it could not be told of another
    return most if asked > most or (not asked and most < Limits().keep_alive_s_max) else asked


def connack_for(
    session: Session,
    packet: mqtt5.ConnectPacket,
    limits: Limits,
    assigned: str | None,
    keep_alive_s: int,
    *,
    is_known: bool,
) -> mqtt5.ConnAckPacket:
    """Return the CONNACK for a client, with all that is not as it asked."""
    asked = expiry_seconds(packet.session_expiry_interval)
    shortened = NEVER_EXPIRES if math.isinf(session.expiry_s) else int(session.expiry_s)
    return mqtt5.ConnAckPacket(
        session_present=is_known,
        assigned_client_id=assigned,
        session_expiry_interval=None if session.expiry_s == asked else shortened,
        server_keep_alive=None if keep_alive_s == packet.keep_alive else keep_alive_s,
        receive_max=limits.receive_max,
        topic_alias_max=limits.topic_aliases_max,
        max_packet_size=limits.packet_bytes_max,
    )
