"""What changes for clients that are inside when the files of users and rights have changed?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from betimes.broker.core.handlers import Gone, Refusal, hang_up

if TYPE_CHECKING:
    from betimes.broker.access.authentication import Gate
    from betimes.broker.core.hub import Hub


def change_gate(hub: Hub, gate: Gate, now_s: float) -> int:
    """Let a new gate hold, also for who is inside; return how many were sent away.

    Rights are those of the new access list from the next message on. A user whom the password file names no
    more is hung up on, and the session ends; one with a new password stays, and needs it the next time.
    """
    hub.gate = gate
    sent_away = 0
    for session in list(hub.sessions.values()):
        session.rights = gate.rights(session.user, session.client_id)
        connection = session.connection
        if session.user is None or connection is None:
            continue
        if gate.passwords is None or session.user not in gate.passwords:
            session.expiry_s = 0.0
            hang_up(connection, Refusal(Gone.NOT_AUTHORIZED.value, "this user is not known any more"), now_s)
            sent_away += 1
    return sent_away
