"""What waits in the tests of scheduling? Messages for single subscribers, and the arrays kernels read."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from betimes.kernels.types import Numbers
from betimes.scheduling.appraisal import (
    BENEFIT,
    BORN_S,
    BOUND_S,
    COUNT,
    DESTINATION,
    ENTERED_S,
    FIRST,
    FIXED_S,
    HOPELESS_SLOT,
    LIFETIME_S,
    OPEN,
    POSTPONED,
    PRICE,
    ROWS,
    S_PER_KB_MEAN,
    S_PER_KB_SD,
    SIZE_KB,
    SLOT,
    VERDICT,
    WAIT_S,
    WAY_FACTS,
    Appraise,
)

LINKS, DESTINATIONS = 3, 4


@dataclass(frozen=True, kw_only=True)
class Wanting:
    """One subscriber, as the paper sees it: where it is, adl and price."""

    destination: int
    delay_s_max: float = math.inf
    price: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """One message in an output queue and the subscribers it is for."""

    wanting: tuple[Wanting, ...]
    deadline_s: float = math.inf
    born_s: float = 0.0
    size_kb: float = 50.0

    def bound_s(self, one: Wanting) -> float:
        return min(one.delay_s_max, self.deadline_s)


@dataclass(frozen=True, kw_only=True)
class Way:
    """What is known of the path to a destination by a link (NN_p * PD, mu_p, sigma_p)."""

    fixed_s: float = 0.0
    s_per_kb_mean: float = 0.1
    s_per_kb_sd: float = 0.02
    wait_s: float = 0.0  # measured behind the link


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Everything an appraisal looks at. A way that is not there is not open."""

    queue: tuple[Waiting, ...]
    ways: dict[tuple[int, int], Way]
    now_s: float = 0.0
    postponed_s: float = 0.0
    contention: float = 0.0
    hopeless_at: float = 0.0005
    free_at_s: tuple[float, ...] = (0.0,) * LINKS


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an appraisal said, by slot; verdicts by (slot, destination)."""

    benefit: dict[int, float] = field(default_factory=dict)
    postponed: dict[int, float] = field(default_factory=dict)
    lifetime_s: dict[int, float] = field(default_factory=dict)
    hopeless: list[int] = field(default_factory=list)
    verdicts: dict[tuple[int, int], float] = field(default_factory=dict)


def way_arrays(ways: dict[tuple[int, int], Way]) -> Numbers:
    array = np.zeros((WAY_FACTS, LINKS, DESTINATIONS))
    for (link, destination), way in ways.items():
        array[OPEN, link, destination] = 1.0
        array[FIXED_S, link, destination] = way.fixed_s
        array[S_PER_KB_MEAN, link, destination] = way.s_per_kb_mean
        array[S_PER_KB_SD, link, destination] = way.s_per_kb_sd
        array[WAIT_S, link, destination] = way.wait_s
    return array


def rows_of(message: Waiting, *, grouped: bool = True) -> Numbers:
    """Return a row for each (destination, bound), or for each subscriber, sorted by destination."""
    rows: dict[tuple[int, float, int], list[float]] = {}
    for number, one in enumerate(message.wanting):
        key = (one.destination, message.bound_s(one), 0 if grouped else number)
        row = rows.setdefault(key, [0.0] * 5)
        row[DESTINATION], row[BOUND_S] = one.destination, message.bound_s(one)
        row[PRICE] += one.price
        row[COUNT] += 1.0
    return np.array([rows[key] for key in sorted(rows)]).reshape(-1, 5)


def queue_arrays(queue: tuple[Waiting, ...], *, grouped: bool = True) -> tuple[Numbers, Numbers]:
    slots = np.zeros((max(len(queue), 1), 5))
    parts, first = [np.zeros((0, 5))], 0
    for slot, message in enumerate(queue):
        rows = rows_of(message, grouped=grouped)
        slots[slot, [FIRST, ROWS, BORN_S, SIZE_KB, ENTERED_S]] = (
            first,
            len(rows),
            message.born_s,
            message.size_kb,
            message.born_s,
        )
        parts.append(rows)
        first += len(rows)
    return slots, np.concatenate(parts)


def appraised(appraise: Appraise, setting: Setting, link: int = 0, *, grouped: bool = True) -> Found:
    """Let a kernel look at the queue, and read what it wrote."""
    slots, rows = queue_arrays(setting.queue, grouped=grouped)
    results = np.full((5, len(slots)), np.nan)
    found, hopeless = appraise(
        setting.now_s,
        link,
        len(setting.queue),
        slots,
        rows,
        way_arrays(setting.ways),
        np.array(setting.free_at_s),
        setting.contention,
        setting.postponed_s,
        setting.hopeless_at,
        results,
    )
    candidates = results[SLOT, :found].astype(int).tolist()
    assert candidates == sorted(candidates), "candidates are in arrival order"
    verdicts: dict[tuple[int, int], float] = {}
    for slot in range(len(setting.queue)):
        for row in range(int(slots[slot, FIRST]), int(slots[slot, FIRST] + slots[slot, ROWS])):
            place = slot, int(rows[row, DESTINATION])
            assert verdicts.setdefault(place, rows[row, VERDICT]) == rows[row, VERDICT]
    return Found(
        benefit=dict(zip(candidates, results[BENEFIT, :found].tolist(), strict=True)),
        postponed=dict(zip(candidates, results[POSTPONED, :found].tolist(), strict=True)),
        lifetime_s=dict(zip(candidates, results[LIFETIME_S, :found].tolist(), strict=True)),
        hopeless=results[HOPELESS_SLOT, :hopeless].astype(int).tolist(),
        verdicts=verdicts,
    )


_bounds = st.sampled_from([2.0, 5.0, 10.0, 30.0, 60.0, math.inf])
_wanting = st.builds(
    Wanting,
    destination=st.integers(0, DESTINATIONS - 1),
    delay_s_max=_bounds,
    price=st.sampled_from([1.0, 2.0, 3.0]),
)
_psd_wanting = st.builds(Wanting, destination=st.integers(0, DESTINATIONS - 1))
_ways = st.dictionaries(
    st.tuples(st.integers(0, LINKS - 1), st.integers(0, DESTINATIONS - 1)),
    st.builds(
        Way,
        fixed_s=st.sampled_from([0.0, 0.004, 1.0]),
        s_per_kb_mean=st.floats(0.05, 0.4),
        s_per_kb_sd=st.floats(0.0, 0.08),
        wait_s=st.sampled_from([0.0, 2.0, 8.0]),
    ),
)


def _waiting(
    wanting: st.SearchStrategy[Wanting], deadlines: st.SearchStrategy[float]
) -> st.SearchStrategy[Waiting]:
    return st.builds(
        Waiting,
        wanting=st.lists(wanting, min_size=1, max_size=8).map(tuple),
        deadline_s=deadlines,
        born_s=st.floats(-40.0, 0.0),
        size_kb=st.sampled_from([10.0, 50.0, 80.0]),
    )


# who states a bound: the publishers (PSD), the subscribers (SSD), or both
messages = st.one_of(
    _waiting(_psd_wanting, st.floats(10.0, 30.0)),
    _waiting(_wanting, st.just(math.inf)),
    _waiting(_wanting, st.floats(1.0, 40.0)),
)
settings_drawn = st.builds(
    Setting,
    queue=st.lists(messages, max_size=6).map(tuple),
    ways=_ways,
    now_s=st.floats(0.0, 10.0),
    postponed_s=st.sampled_from([0.0, 3.75, 10.0]),
    contention=st.sampled_from([0.0, 0.5, 1.0]),
    hopeless_at=st.sampled_from([0.0005, 0.1, 0.3]),
    free_at_s=st.tuples(*[st.floats(0.0, 20.0)] * LINKS),
)
