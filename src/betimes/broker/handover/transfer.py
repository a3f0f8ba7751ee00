"""Functions that move a session into a hub, and out of one."""

from __future__ import annotations

from betimes.broker.core.hub import Hub
from betimes.broker.delivery.delivery import Delivery
from betimes.broker.delivery.recently_delivered import ArrivedDeliveries, RecentDeliveries, had_of
from betimes.broker.delivery.session import Session
from betimes.broker.durability.session_rows import SessionRows, read_delivery, read_subscription
from betimes.model.telemetry import Reason


def fits(hub: Hub, rows: SessionRows) -> bool:
    """Tell whether a session is within the limits of this broker."""
    limits = hub.limits
    most = 2 * limits.queue_bytes_max  # as much may be in flight to the client as waits for it
    return len(rows.subscriptions) <= limits.subscriptions_max and rows.size_bytes <= most


def move_in(
    hub: Hub, client_id: str, user: str | None, expiry_s: float, rows: SessionRows, now_s: float
) -> Session:
    """Make a session of the hub from the rows of another broker; it waits for its client."""
    session = hub.adopt(client_id, user, expiry_s, now_s)
    for written, values in rows.subscriptions.items():
        hub.subscribe(written, read_subscription(session, written, values), now_s)
    for packet_id in rows.incoming:
        session.taken(packet_id)
    for publication, values in rows.deliveries:
        delivery = read_delivery(session, publication, values)
        if not session.take_in(delivery, now_s):
            hub.publishing.lose(delivery, Reason.QUEUE_FULL, now_s)
    had = rows.all_had()
    session.arrived, session.recent = ArrivedDeliveries(had), RecentDeliveries()
    for each in rows.had:
        session.recent.add(each, now_s)
    return session


def move_out(hub: Hub, session: Session, now_s: float) -> list[Delivery]:
    """Take a session out of the hub: it is at another broker. Return the deliveries it still had to make.

    Its subscriptions stay, so that messages under way to this broker can follow it.
    """
    owed = session.owed()
    hub.release(session, now_s)
    session.leave()
    session.end(now_s)
    return owed


def take_late(hub: Hub, session: Session, rows: SessionRows, now_s: float) -> None:
    """Deliver what arrived for a client at the broker that had its session before."""
    for publication, values in rows.deliveries:
        delivery = read_delivery(session, publication, values)
        if session.arrived is not None and not session.arrived.is_new(had_of(delivery)):
            continue
        if session.rights is not None and not session.rights.may_read(publication.topic):
            continue
        if delivery.too_late(now_s):
            hub.publishing.lose(delivery, Reason.EXPIRED, now_s)
        else:
            session.offer(delivery, now_s)
