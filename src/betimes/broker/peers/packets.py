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
    message = letter.message
    kind = type(message).__name__.removeprefix("Peer")
    return json.dumps([letter.sender, letter.to, kind, *_WRITERS[kind](message)]).encode()


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
    cards = [[_card(each.card), each.issued] for each in descriptors]
    return json.dumps({"asks": asks, "cards": cards}).encode()


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


def _texts(expressions: Iterable[Dz]) -> list[str]:
    return [str(each) for each in expressions]


def _pairs(pairs: Iterable[tuple[Dz, float]]) -> list[tuple[str, float | None]]:
    return [(str(dz), _or_none(number)) for dz, number in pairs]


def _card(card: Card | None) -> list[Any] | None:
    if card is None:
        return None
    return [card.name, _texts(card.dz), card.delay_max, _or_none(card.depth), _pairs(card.rates)]


def _or_none(number: float) -> float | None:
    return None if math.isinf(number) else number


_WRITERS: dict[str, Callable[[Any], list[Any]]] = {
    "Connect": lambda message: [_card(message.card), _texts(message.wanted)],
    "Accepted": lambda message: [_card(message.card), _texts(message.served)],
    "Adopt": lambda message: [_card(message.card), _texts(message.served)],
    "Refresh": lambda message: [_card(message.card), _texts(message.served)],
    "Hint": lambda message: [_card(message.card)],
    "Dismissed": lambda message: [_texts(message.served), _card(message.card)],
    "Leave": lambda message: [_texts(message.served)],
    "Beat": lambda message: [_pairs(message.depths)],
    "DetectCycle": lambda message: [
        message.originator,
        str(message.dz),
        _or_none(message.delay_max),
        message.steps_left,
    ],
}


class _Reader:
    """Reads messages and cards, with expressions of at most `length_max` places."""

    def __init__(self, length_max: int) -> None:
        self._length_max = length_max

    def message(self, kind: str, facts: list[Any]) -> Said:
        match kind, facts:
            case "Connect", [card, wanted]:
                return Connect(self.card(card), self._expressions(wanted))
            case "Accepted", [card, served]:
                return PeerAccepted(self.card(card), self._expressions(served))
            case "Adopt", [card, served]:
                return Adopt(self.card(card), self._expressions(served))
            case "Refresh", [card, served]:
                return PeerRefresh(self.card(card), self._expressions(served))
            case "Hint", [card]:
                return Hint(None if card is None else self.card(card))
            case "Dismissed", [served, card]:
                return Dismissed(self._expressions(served), None if card is None else self.card(card))
            case "Leave", [served]:
                return PeerLeave(self._expressions(served))
            case "Beat", [depths]:
                return Beat(self._numbered(depths))
            case "DetectCycle", [originator, dz, delay_max, steps_left]:
                among = _number_or_inf(delay_max)
                return DetectCycle(
                    _name(originator), self._dz(dz), among, read_whole(steps_left, 0, CYCLE_STEPS_MAX)
                )
        raise ValueError(f"{str(kind)[:40]} with {len(facts)} facts")

    def card(self, fields: list[Any]) -> Card:
        name, expressions, delay_max, depth, rates = fields
        return Card(
            _name(name),
            self._expressions(expressions),
            _number(delay_max),
            _number_or_inf(depth),
            self._numbered(rates),
        )

    def _expressions(self, texts: list[str]) -> DzSet:
        if len(texts) > EXPRESSIONS_MAX:
            raise ValueError(f"more than {EXPRESSIONS_MAX} expressions")
        return tuple(map(self._dz, texts))

    def _numbered(self, pairs: list[tuple[str, float | None]]) -> tuple[tuple[Dz, float], ...]:
        if len(pairs) > EXPRESSIONS_MAX:
            raise ValueError(f"more than {EXPRESSIONS_MAX} expressions")
        return tuple([(self._dz(text), _number_or_inf(number)) for text, number in pairs])

    def _dz(self, text: str) -> Dz:
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
