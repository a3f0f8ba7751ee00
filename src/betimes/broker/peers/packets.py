"""The messages between peers as JSON: letters and gossip, written and read.

Whatever another peer sends is validated and bounded here; an invalid message is a `LinkError`, which ends the
connection.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from betimes.broker.links.packets import LinkError
from betimes.broker.peers.settings import address_of, split_address
from betimes.language.json.values import read_finite, read_text, read_whole
from betimes.matching.dz.expressions import Dz, DzSet, read_dz
from betimes.model.errors import BetimesError
from betimes.peers.messages import (
    CYCLE_STEPS_MAX,
    Adopt,
    Beat,
    Connect,
    DetectCycle,
    Dismissed,
    Hint,
    PeerAccepted,
    PeerLeave,
    PeerRefresh,
    Said,
)
from betimes.peers.parents import Card

EXPRESSIONS_MAX = 256  # in one message
CARDS_MAX = 64
NUMBER_MAX = 1e12
ISSUED_MAX = (1 << 63) - 1


class Letter(NamedTuple):
    """A message from one peer to another."""

    sender: str
    to: str
    message: Said


class Descriptor(NamedTuple):
    """A card as gossip carries it; of two cards of a peer, the one with the higher number is newer."""

    card: Card
    issued: int


def letter_text(letter: Letter) -> bytes:
    """Return a letter as JSON."""
    kind, fields = type(letter.message), letter.message[: len(_FIELDS[type(letter.message)])]
    return json.dumps([letter.sender, letter.to, _name_of(kind), *_plain(fields)]).encode()


def read_letter(payload: bytes, length_max: int) -> Letter:
    """Return the letter in a payload; expressions have at most `length_max` places."""
    try:
        sender, to, kind, *facts = json.loads(payload)
        message = _Reader(length_max).message(kind, facts)
        return Letter(_name(sender), _name(to), message)
    except (ValueError, KeyError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"a letter that cannot be read ({_short(error)})") from None


def gossip_text(descriptors: Iterable[Descriptor], *, asks: bool) -> bytes:
    """Return cards of peers as JSON; with `asks` the receiver answers with cards of its own."""
    return json.dumps({"asks": asks, "cards": _plain(tuple(descriptors))}).encode()


def read_gossip(payload: bytes, length_max: int) -> tuple[list[Descriptor], bool]:
    """Return the cards of peers that a neighbour sent, and whether it asks for an answer."""
    try:
        fields = json.loads(payload)
        cards = fields["cards"]
        if len(cards) > CARDS_MAX:
            raise ValueError(f"more than {CARDS_MAX} cards")
        reader = _Reader(length_max)
        found = [Descriptor(reader.card(card), read_whole(number, 0, ISSUED_MAX)) for card, number in cards]
        return found, bool(fields["asks"])
    except (ValueError, KeyError, TypeError, RecursionError, BetimesError) as error:
        raise LinkError(f"gossip that cannot be read ({_short(error)})") from None


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: tuples as lists, expressions as texts, inf as null."""
    if isinstance(value, Dz):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return None if value == math.inf else value


class _Reader:
    """Reads messages and cards, with expressions of at most `length_max` places."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max

    def message(self, kind: str, facts: list[Any]) -> Said:
        made = _KINDS.get(kind)
        if made is None or len(facts) != len(_FIELDS[made]):
            raise ValueError(f"{str(kind)[:40]} with {len(facts)} facts")
        message: Said = made(*[read(self, fact) for read, fact in zip(_FIELDS[made], facts, strict=True)])
        return message

    def card(self, fields: list[Any]) -> Card:
        name, expressions, delay_max, depth, rates = fields
        return Card(
            _name(name),
            self.expressions(expressions),
            _number(delay_max),
            _number_or_inf(depth),
            self.numbered(rates),
        )

    def card_or_none(self, fields: list[Any] | None) -> Card | None:
        return None if fields is None else self.card(fields)

    def expressions(self, texts: list[str]) -> DzSet:
        if len(texts) > EXPRESSIONS_MAX:
            raise ValueError(f"more than {EXPRESSIONS_MAX} expressions")
        return tuple(map(self.dz, texts))

    def numbered(self, pairs: list[tuple[str, float | None]]) -> tuple[tuple[Dz, float], ...]:
        if len(pairs) > EXPRESSIONS_MAX:
            raise ValueError(f"more than {EXPRESSIONS_MAX} expressions")
        return tuple([(self.dz(text), _number_or_inf(number)) for text, number in pairs])

    def dz(self, text: str) -> Dz:
        dz = read_dz(text)
        if dz.length > self._length_max or dz.stars:
            raise ValueError("an expression of another space")
        return dz


def _name(value: object) -> str:
    name = read_text(value)
    split_address(address_of(name))
    return name


def _number(value: object) -> float:
    return read_finite(value, 0.0, NUMBER_MAX)


def _number_or_inf(value: object) -> float:
    return math.inf if value is None else _number(value)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _name_of(kind: type) -> str:
    return kind.__name__.removeprefix("Peer")


# The first fields of each message, those that are sent, and how each is read.
_FIELDS: dict[type, tuple[Callable[[_Reader, Any], Any], ...]] = {
    Connect: (_Reader.card, _Reader.expressions),
    PeerAccepted: (_Reader.card, _Reader.expressions),
    Adopt: (_Reader.card, _Reader.expressions),
    PeerRefresh: (_Reader.card, _Reader.expressions),
    Hint: (_Reader.card_or_none,),
    Dismissed: (_Reader.expressions, _Reader.card_or_none),
    PeerLeave: (_Reader.expressions,),
    Beat: (_Reader.numbered,),
    DetectCycle: (
        lambda _, name: _name(name),
        _Reader.dz,
        lambda _, delay_max: _number_or_inf(delay_max),
        lambda _, steps: read_whole(steps, 0, CYCLE_STEPS_MAX),
    ),
}
_KINDS = {_name_of(kind): kind for kind in _FIELDS}
