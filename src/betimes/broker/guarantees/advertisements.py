"""What publishers at this broker advertise: the bandwidth that their events will take (004, section 2).

A client says so in its CONNECT, in user properties `advertise`, such as `traffic/a4 = 15KB/s`, and it holds
while the client is connected. Those of one topic add up: the network is told of one publisher, this broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from betimes.broker.access.acl import Rights
from betimes.broker.delivery.session import Session
from betimes.broker.links.reservations import LinkReservations
from betimes.language.guarantees import read_advertisement
from betimes.model.errors import TextError
from betimes.model.user_properties import ADVERTISE
from betimes.reservations.node import ADVERTISED_MAX

ADVERTISED_BY_ONE_MAX = 100
OF_BROKER = "topics that begin with $ are the brokers' own"
BYTES_PER_S_MAX = 10**12


def read_advertisements(properties: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return what a CONNECT advertises, in bytes a second by topic; what cannot be read is a `TextError`."""
    found: dict[str, int] = {}
    for name, text in properties:
        if name != ADVERTISE:
            continue
        topic, profile = read_advertisement(text)
        if topic in found:
            raise TextError(text, 0, f"{topic} is advertised twice", "say it once")
        if len(found) >= ADVERTISED_BY_ONE_MAX:
            raise TextError(text, 0, f"a client advertises at most {ADVERTISED_BY_ONE_MAX} topics")
        found[topic] = max(round(profile.bandwidth_kb_per_s * 1000.0), 1)
    return found


class Advertised:
    """What is advertised at one broker, by client and in sum."""

    def __init__(self, reserved: LinkReservations) -> None:
        self._reserved = reserved
        self._by_client: dict[str, dict[str, int]] = {}
        self._sums: Counter[str] = Counter()

    def check(self, rights: Rights | None, properties: Iterable[tuple[str, str]]) -> None:
        """Refuse, as a `TextError`, what cannot be read, or may not be advertised with these rights."""
        topics = read_advertisements(properties)
        for topic in topics:
            if topic[0] == "$":
                raise TextError(topic, 0, OF_BROKER, "advertise what you publish")
            if rights is not None and not rights.may_write(topic):
                raise TextError(topic, 0, "this may not be advertised", "ask the owner of the access list")
        if len({*topics, *self._sums}) > max(ADVERTISED_MAX, len(self._sums)):
            raise TextError(next(iter(topics)), 0, f"at most {ADVERTISED_MAX:,} topics are advertised here")

    def came(self, session: Session, properties: Iterable[tuple[str, str]], now_s: float) -> None:
        """Take in what a client advertises; it was looked at before."""
        for topic, bytes_per_s in read_advertisements(properties).items():
            self._by_client.setdefault(session.client_id, {})[topic] = bytes_per_s
            self._sums[topic] += bytes_per_s
            self._reserved.advertise(topic, min(self._sums[topic], BYTES_PER_S_MAX), now_s)

    def left(self, session: Session, now_s: float) -> None:
        """Take back what a client advertised that is gone."""
        for topic, bytes_per_s in self._by_client.pop(session.client_id, {}).items():
            self._sums[topic] -= bytes_per_s
            if self._sums[topic]:
                self._reserved.advertise(topic, min(self._sums[topic], BYTES_PER_S_MAX), now_s)
            else:
                del self._sums[topic]
                self._reserved.withdraw(topic, now_s)
