"""Identifiers: the position of a name on the ring of ids, and the node closest to it.

Ids are 32-bit hashes of names, and lie on a ring. A node is known by its `Contact`: id and name. Of two
contacts that are equally close the lesser one counts, so that all nodes agree, even on names with one hash.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

ID_BITS = 32
RING = 1 << ID_BITS


class Contact(NamedTuple):
    """A node as others know it."""

    id: int
    name: str


def id_of(text: str) -> int:
    """Return the position of a text on the ring.

    >>> id_of("b1"), id_of("b2")
    (2024147173, 99147184)
    """
    return int.from_bytes(blake2b(text.encode(), digest_size=ID_BITS // 8).digest(), "big")


def contact_of(name: str) -> Contact:
    """Return the contact of a node by its name."""
    return Contact(id_of(name), name)


def rendezvous_key(event_type: str, replica: int) -> int:
    """Return the key of a rendezvous: hash(T), and hash(T+i) for the i-th replica (004, section 5.4).

    The replica is appended to the type, which is a text: so no two types share replicas.
    """
    return id_of(event_type if replica == 0 else f"{event_type}+{replica}")


def ring_distance(left: int, right: int) -> int:
    """Return the distance of two ids, the shorter way round.

    >>> ring_distance(1, RING - 1)
    2
    """
    clockwise = (right - left) % RING
    return min(clockwise, RING - clockwise)


def closest(key: int, contacts: Iterable[Contact]) -> Contact:
    """Return the contact numerically closest to a key; of equals the lesser."""
    return min(contacts, key=lambda each: (ring_distance(each.id, key), each))


def shared_bits(left: int, right: int) -> int:
    """Return the number of equal leading bits of two ids.

    >>> shared_bits(0, 1), shared_bits(0, RING - 1), shared_bits(5, 5)
    (31, 0, 32)
    """
    return ID_BITS - (left ^ right).bit_length()
