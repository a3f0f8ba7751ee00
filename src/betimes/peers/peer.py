"""One peer of the brokerless overlay (002, sections 4 and 5).

Sans-I/O: messages of other peers, and the peer's turn in each cycle, go in with the time; messages and
deliveries come out. Links carry the expressions that they serve, so that every event arrives once.

Two protocols. In the paper's, a peer leaves a parent whose events arrive too late. In ours, it keeps that
parent while it looks for one whose events would be in time (*make before break*), leaves parents from which
nothing arrives (*starve*), adopts the child that was dismissed for it (*adopt*), offers more than it wants
only as far as that needs no further publisher, and is sent only what peers below want of that (*needs*).
Finally it states a looser bound if its own turns out to be too tight (*yield*), so that it does not block
other peers.

A peer publishes or subscribes; a participant that does both is two peers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from betimes.matching.dz.expressions import Dz, DzSet, coarsened, covers
from betimes.matching.dz.spaces import CellBox, Space
from betimes.model.bounded_map import BoundedMap
from betimes.peers.candidates import Candidates, coarser_for
from betimes.peers.children import Children, View
from betimes.peers.coverage import Coverage, CoverageTable
from betimes.peers.messages import (
    Adopt,
    Beat,
    Connect,
    DetectCycle,
    Dismissed,
    Got,
    Hint,
    Notice,
    PeerAccepted,
    PeerEffect,
    PeerLeave,
    PeerRefresh,
    Said,
    SendToPeer,
)
from betimes.peers.parents import PUBLISHER_DELAY, Card
from betimes.peers.settings import PeerSettings

NEEDED_MAX = 32  # expressions that are stated for one; beyond, some coarser ones
CLAIM_MAX = 5.0  # times its bound: the loosest bound that a peer states
UNRELATED = (Hint, Beat, DetectCycle)  # to what is needed
SEEN_MAX = 2_048  # events that are remembered, so that none is delivered twice


def needed_of(dz: Dz, wanted: Iterable[Dz]) -> DzSet:
    """Return the wanted part of one expression, in at most `NEEDED_MAX` parts without wildcards."""
    parts = []
    for each in wanted:
        if covers(each, dz):
            return (dz,)
        if covers(dz, each):
            parts.append(each)
    if len(parts) > 1:
        parts = list(coarsened(parts, NEEDED_MAX))
    return tuple(parts)


class Needs:
    """What one peer stated to its parents as its needs: its own, and those of its children.

    A peer that receives more than it wants, to find a better place, offers all of that to others, and few may
    take it. So it states to each parent what is needed now, and again as soon as a child needs more: its
    place stays the same, and what no peer below wants is not sent.
    """

    def __init__(self, wanted: DzSet) -> None:
        self.wanted = wanted  # by its own application
        self._told: dict[str, tuple[DzSet, DzSet]] = {}
        self._below: DzSet = ()  # what was wanted here and below at the last computation,
        self._needed: dict[Dz, DzSet] = {}  # and the part of each expression that this is

    def whole(self, lines: CoverageTable, children: Children) -> DzSet:
        """Return the expressions of which everything is needed, so that the arrivals are complete."""
        needed = self.of_each(lines.dz, children)
        return tuple([dz for dz in lines.dz if needed[dz] == (dz,)])

    def of_each(self, served: DzSet, children: Children) -> dict[Dz, DzSet]:
        """Return the needed part of each expression; most often nothing has changed."""
        below = (*self.wanted, *(dz for child in children.by_name.values() for dz in child.needed))
        if below != self._below:
            self._below, self._needed = below, {}
        for dz in served:
            if dz not in self._needed:
                self._needed[dz] = needed_of(dz, below)
        return self._needed

    def news(
        self, card: Callable[[], Card], lines: CoverageTable, children: Children, *, repeats: bool = False
    ) -> list[SendToPeer]:
        """Return the news for parents with outdated needs; with `repeats`, for all of them."""
        known, self._told = self._told, {}
        needed = self.of_each(lines.dz, children)
        found = []
        for name in sorted(lines.parents()):
            served = lines.of_parent(name)
            told = self._told[name] = served, tuple([part for dz in served for part in needed[dz]])
            if repeats or known.get(name, (served, served)) != told:  # a new parent sends all
                found.append(SendToPeer(name, PeerRefresh(card(), *told)))
        return found


def beats_to(children: Children, lines: CoverageTable | None) -> list[SendToPeer]:
    """Return the beat for each child; without lines the peer publishes, and has no delay.

    The reports travel from hop to hop, as distances do in routing: a parent without a parent reports
    infinity, and in a cycle the numbers grow until a peer leaves.
    """
    return [
        SendToPeer(name, Beat(tuple([(dz, _depth(dz, lines)) for dz in sorted(child.served)])))
        for name, child in children.by_name.items()
    ]


def _depth(dz: Dz, lines: CoverageTable | None) -> float:
    if lines is None:
        return 0.0
    for wider, line in lines.by_dz.items():
        if covers(wider, dz):
            return line.depth if lines.is_covered(wider, line) else math.inf
    return math.inf


def depths_from(sender: str, beat: Beat, lines: CoverageTable) -> Iterator[tuple[Dz, Coverage, float]]:
    """Return the delays in a beat for lines that its sender feeds, if events arrive at all."""
    for dz, depth in beat.depths:
        line = lines.by_dz.get(dz)
        if line is not None and depth < math.inf and (line.parent == sender or sender in line.publishers):
            yield dz, line, depth


class Peer:
    """One participant; `boxes` are what its application wants, `advertised` what it publishes."""

    def __init__(
        self,
        name: str,
        settings: PeerSettings,
        space: Space,
        view: View,
        *,
        delay_max: float = PUBLISHER_DELAY,
        boxes: Sequence[CellBox] = (),
        advertised: DzSet = (),
        chance: Callable[[], float],
        now: float = 0.0,
    ) -> None:
        self.name = name
        self.settings = settings
        self.delay_max = delay_max
        self.publishes = delay_max == PUBLISHER_DELAY
        self.claim = delay_max  # the bound that it states: looser, if its own turned out to be too tight
        # the last time it was covered in time; the last time it kept its bandwidth
        self._claimed_at = self._within_at = now
        self._space = space
        self._view = view
        self._chance = chance
        self._advertised = advertised
        self._accuracy = settings.accuracy(space, boxes)
        self.lines = CoverageTable(self._accuracy.finest(), now)
        self.children = Children(settings, view, chance)
        self._needs = Needs(self._accuracy.finest())
        self._whole_rates: dict[Dz, float] = {}  # measured, of expressions of which everything arrives
        self._candidates = Candidates(name, settings, view, self.children, chance)
        self._cards: dict[str, Card] = {}  # of parents
        self._seen: BoundedMap[tuple[str, int], None] = BoundedMap(SEEN_MAX)
        self._refreshed = now
        self._proposed: tuple[str, DzSet] | None = None  # to which peer, with the expressions proposed
        self.requests = 0  # that were sent
        self.received = self.unwanted = 0.0  # events
        self.repeated = 0  # duplicates
        self.published_rate: float | None = None

    @property
    def dz(self) -> DzSet:
        """Return the expressions that it receives, or publishes."""
        return self._advertised if self.publishes else self.lines.dz

    def card(self) -> Card:
        """Return its card."""
        if self.publishes:
            return Card(self.name, self.dz, PUBLISHER_DELAY, 0.0, self.rates())
        return Card(self.name, self.lines.dz, self.claim, self.lines.depth, self.rates())

    def rates(self) -> tuple[tuple[Dz, float], ...]:
        """Return the event rates that it publishes, or measures, by expression."""
        if self.publishes:
            rate = self.published_rate
            return () if rate is None else tuple([(dz, rate / len(self.dz)) for dz in self.dz])
        measured = self._whole_rates if self.settings.tells_needs else self.lines.measured()
        return tuple(measured.items())

    # --- the turn

    def act(self, now: float) -> list[PeerEffect]:
        """Take the turn: keep connections up, and search what is missing."""
        effects = self._keep_up(now)
        if self.publishes:
            return effects
        missing, late = self.lines.uncovered(), self.lines.late()
        if not missing and not late:
            self._claimed_at = now
            return effects
        if now - self._claimed_at > self.settings.yield_after and self.claim < CLAIM_MAX * self.delay_max:
            self.claim, self._claimed_at = self.claim + self.settings.yield_step, now
        if missing and not self.settings.keeps_parts:
            effects += self._coarsen(missing, now)
            missing = self.lines.uncovered()
        return effects + self._ask(missing or late, now, is_late=not missing)

    def _keep_up(self, now: float) -> list[PeerEffect]:
        """Forget silent peers, send refreshes, and measure."""
        effects: list[PeerEffect] = []
        if now - self._refreshed < self.settings.refresh_every:
            return effects
        self._refreshed = now
        self.children.forget_silent(now)
        for dz, line in self.lines.by_dz.items():
            line.measure(now)
            if line.parent is not None and now - line.heard > self.settings.starve_after:
                effects += self._leave(line.parent, dz, now)
        if self.settings.tells_needs:
            whole = self._needs.whole(self.lines, self.children)
            self._whole_rates = {dz: rate for dz, rate in self.lines.measured().items() if dz in whole}
        effects += self._refresh(repeats=True)
        if self.settings.beats:
            effects += beats_to(self.children, None if self.publishes else self.lines)
        return effects + self._refine(now)

    def _refresh(self, *, repeats: bool = False) -> list[SendToPeer]:
        """Send refreshes to all parents, or needs to those that do not know them."""
        if self.settings.tells_needs:
            return self._needs.news(self.card, self.lines, self.children, repeats=repeats)
        parents = sorted(self.lines.parents()) if repeats else []
        return [SendToPeer(name, PeerRefresh(self.card(), self.lines.of_parent(name))) for name in parents]

    def _ask(self, needed: list[Dz], now: float, *, is_late: bool) -> list[PeerEffect]:
        """Ask a peer for the expression that was needed longest, and for what else that peer has."""
        asked = min(needed, key=lambda dz: self.lines.by_dz[dz].since)
        chosen = self._candidates.best(asked, self.lines, self.claim, now, is_late=is_late)
        if chosen is None:
            return []
        self._candidates.asked(chosen.name, now)
        self.requests += 1
        proposed = self._proposed_for(asked, now, is_late=is_late)
        if proposed is not None:
            new = tuple([dz for dz in proposed if dz not in self.lines.by_dz])
            if all(map(chosen.serves, new)):
                self._proposed = (chosen.name, proposed)
                return [SendToPeer(chosen.name, Connect(self.card()._replace(dz=proposed), new))]
        wanted = tuple([dz for dz in needed if chosen.serves(dz)])
        return [SendToPeer(chosen.name, Connect(self.card(), wanted))]

    # --- how much the peer receives (section 5)

    def want(self, boxes: Sequence[CellBox], now: float) -> list[PeerEffect]:
        """Change what the application wants."""
        self._accuracy = self.settings.accuracy(self._space, boxes)
        self._needs.wanted = wanted = self._accuracy.finest()
        return [*self._set_dz(wanted, now), *self.children.keep_to(wanted)]

    def _coarsen(self, missing: list[Dz], now: float) -> list[PeerEffect]:
        """Receive more than is wanted if no parent was found for long, as far as is accepted."""
        for dz in missing:
            line = self.lines.by_dz[dz]
            if now - line.since >= self.settings.coarsen_after:
                line.since = now
                coarse = self._coarser(dz)
                if coarse is not None:
                    return self._set_dz(coarse, now)
        return []

    def _proposed_for(self, dz: Dz, now: float, *, is_late: bool) -> DzSet | None:
        """Return other expressions, to find a better place for one that is late or missing."""
        if not is_late and not self.settings.keeps_parts:
            return None
        line = self.lines.by_dz[dz]
        steps = int((now - (line.late_since if is_late else line.since)) / self.settings.coarsen_after)
        return self._coarser(dz, steps if self.settings.keeps_parts else min(steps, 1))

    def _coarser(self, dz: Dz, steps: int = 1) -> DzSet | None:
        told, only = self._view.rates(), self.settings.keeps_late
        return coarser_for(dz, self._accuracy, self.lines, told, steps=steps, same_publishers=only)

    def _refine(self, now: float) -> list[PeerEffect]:
        """Receive less if more arrives than is accepted."""
        fine = self._accuracy.finer(self.dz, self.lines.measured(), self.lines.overall_rate)
        if fine is None:
            self._within_at = now
        if fine is None or now - self._within_at < self.settings.refine_after:
            return []
        return [*self._set_dz(fine, now), *self.children.keep_to(fine)]

    def _set_dz(self, wanted: DzSet, now: float) -> list[PeerEffect]:
        """Change the expressions; the feeders of an unchanged part keep it."""
        leaving = self.lines.change(wanted, now, keeps_parts=self.settings.keeps_parts)
        going_on = self.lines.parents() if self.settings.keeps_parts else set()
        return [
            SendToPeer(
                name,
                PeerRefresh(self.card(), self.lines.of_parent(name))
                if name in going_on
                else PeerLeave(parts),
            )
            for name, parts in leaving.items()
        ]

    # --- messages of other peers

    def receive(self, sender: str, message: Said, now: float, *, took: float = 1.0) -> list[PeerEffect]:
        """Handle a message of another peer, which took so long: a hop, or seconds."""
        if isinstance(message, Notice):
            return self._take(sender, message, now, took)
        effects = self._hear(sender, message, now, took)
        return effects if isinstance(message, UNRELATED) else [*effects, *self._refresh()]

    def _hear(self, sender: str, message: Said, now: float, took: float) -> list[PeerEffect]:
        match message:
            case Connect():
                above = [card for name, card in self._cards.items() if name in self.lines.parents()]
                return self.children.connect(message, self.card(), above, now)
            case PeerAccepted():
                return self._accepted(message, now)
            case Hint():
                self._candidates.hear_hint(message.card)
            case Dismissed():
                self._candidates.hear_hint(message.card)
                for dz in message.served:
                    if dz in self.lines.by_dz:
                        self.lines.by_dz[dz].lose(sender, now)
            case PeerLeave():
                self.children.left(sender, message.served)
            case Adopt():
                return self.children.adopt(message, self.card(), now)
            case PeerRefresh():
                return self.children.refreshed(sender, message, self.card(), now)
            case Beat():
                return self._hear_beat(sender, message, now, took)
            case DetectCycle():
                return self._detect(sender, message, now)
        return []

    def hear_of(self, publisher: Card) -> None:
        """Learn of a publisher."""
        self.lines.hear_of(publisher)

    def lost(self, name: str, now: float) -> None:
        """Note that a neighbour is gone."""
        self.children.lost(name)
        self.lines.forget(name)
        for line in self.lines.by_dz.values():
            line.lose(name, now)

    def _accepted(self, message: PeerAccepted, now: float) -> list[PeerEffect]:
        """Use a new parent for what is still missing; leave the parents that it replaces."""
        card, effects, unwanted = message.card, list[PeerEffect](), []
        if self._proposed is not None and self._proposed[0] == card.name:
            if any(dz in self._proposed[1] and dz not in self.lines.by_dz for dz in message.served):
                effects += self._set_dz(self._proposed[1], now)
            self._proposed = None
        self._cards = {name: each for name, each in self._cards.items() if name in self.lines.parents()}
        self._cards[card.name] = card
        for dz in message.served:
            line = self.lines.by_dz.get(dz)
            if line is None or (line.parent is not None and line.parent != card.name and not line.is_late):
                unwanted.append(dz)
            elif line.parent != card.name:
                old = line.replace(card.name, now, publishes=card.publishes)
                effects += [SendToPeer(name, PeerLeave((dz,))) for name in old]
                # If peers state looser bounds, the order of bounds is no safeguard, and any peer could be
                # in the cycle.
                among = self.claim if self.settings.yield_after == math.inf else math.inf
                effects += self.children.ask_for_cycle(card, DetectCycle(self.name, dz, among))
        if unwanted:
            effects.append(SendToPeer(card.name, PeerLeave(tuple(unwanted))))
        return effects

    def _leave(self, name: str, dz: Dz, now: float) -> list[PeerEffect]:
        self.lines.by_dz[dz].lose(name, now)
        return [SendToPeer(name, PeerLeave((dz,)))]

    # --- cycles, for each expression

    def _detect(self, sender: str, message: DetectCycle, now: float) -> list[PeerEffect]:
        line = self.lines.by_dz.get(message.dz)
        if line is None or line.parent != sender or message.delay_max not in (self.claim, math.inf):
            return []
        if message.originator == self.name:
            return self._leave(sender, message.dz, now)
        if not message.steps_left:
            return []
        return self.children.pass_on(message._replace(steps_left=message.steps_left - 1))

    # --- events (algorithm 2)

    def publish(self, notice: Notice) -> list[PeerEffect]:
        """Send an event to the children that want it."""
        return self.children.forward(notice, but="")

    def _take(self, sender: str, notice: Notice, now: float, took: float) -> list[PeerEffect]:
        """Handle an event: deliver it, and forward it to the children, or upwards, as needed."""
        is_from_below = sender in self.children.by_name
        found = self.lines.of(notice.dz)
        if found is None:
            return [] if is_from_below else [SendToPeer(sender, PeerLeave((notice.dz,)))]
        dz, line = found
        is_from_above = sender == line.parent or sender in line.publishers
        if not is_from_above and not is_from_below:
            return [SendToPeer(sender, PeerLeave((dz,)))]
        event = (notice.publisher, notice.number)
        if event in self._seen:
            self.repeated += 1
            return []
        self._seen.note(event, None)
        delay = notice.delay + took
        onward = notice._replace(delay=delay)
        effects = self.children.forward(onward, but=sender)
        if (
            line.parent is not None
            and line.parent != sender
            and (not is_from_above or sender == notice.publisher)
        ):
            effects.append(SendToPeer(line.parent, onward))
        if is_from_above:
            line.note(notice.weight, delay, now)
            effects += self._judge(dz, line, delay, now)
        elif line.parent is None and notice.publisher not in line.publishers:
            # the publisher is new, and was seen below first
            effects.append(SendToPeer(notice.publisher, Connect(self.card(), (dz,))))
        self.received += notice.weight
        if self._accuracy.wants(notice.cells):
            self._accuracy.wanted(notice.weight, now)
            effects.append(Got(notice, delay, delay <= self.delay_max))
        else:
            self.unwanted += notice.weight
        return effects

    def _hear_beat(self, sender: str, beat: Beat, now: float, took: float) -> list[PeerEffect]:
        """Handle a parent's report of delays; leave the parent if it can only be a cycle."""
        effects: list[PeerEffect] = []
        for dz, line, depth in depths_from(sender, beat, self.lines):
            line.heard, line.depth = now, depth + took
            is_cycle = sender == line.parent and line.depth > CLAIM_MAX * self.delay_max
            effects += self._leave(sender, dz, now) if is_cycle else self._judge(dz, line, line.depth, now)
        return effects

    def _judge(self, dz: Dz, line: Coverage, delay: float, now: float) -> list[PeerEffect]:
        """Act on a parent whose events arrive too late."""
        is_late = delay > self.claim
        if self.settings.keeps_late:
            line.judge(is_late, now)
        elif is_late and line.parent is not None and self.leaves_when_late(line):
            return self._leave(line.parent, dz, now)
        return []

    def leaves_when_late(self, line: Coverage) -> bool:
        """Return whether a parent is left at once if an event is too late: the paper's protocol."""
        if self.settings.keeps_late or line.parent is None:
            return False
        return self._cards[line.parent].delay_max == self.claim

    def took(self, received: int, wanted: int, repeated: int, now: float) -> None:
        """Count events that arrived, which the coverage already has."""
        self.received += received
        self.unwanted += received - wanted
        self.repeated += repeated
        for count in (1, wanted - 1):  # a rate is known when the first event arrives
            if wanted and count:
                self._accuracy.wanted(count, now)
