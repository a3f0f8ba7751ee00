"""The plan of a match: one index for all subscriptions, or cells, and which ones.

One index for all is built once and sent to every machine: the choice as long as it is small enough. Otherwise
several divisions are tried on a sample, and the one with the least work is taken. A cell that is still too
large is cut into *shards* (subscriptions are distributed; events go to all of them), and one with too many
events is cut by *salt* (events are distributed; its subscriptions are copied), so that no task has much more
work than the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from betimes.kernels.types import Integers, Numbers
from betimes.model.errors import SettingError
from betimes.pipeline.match.cells import (
    CellGroup,
    cells_of_events,
    cells_of_subscriptions,
    dimension_of,
    joint_group,
    separate_groups,
)
from betimes.pipeline.rows.events import EventColumns
from betimes.pipeline.rows.subscriptions import SubscriptionColumns
from betimes.pipeline.rows.topic_lanes import WHOLE_TOPIC

INDEX_MB_MAX = 512
SUBSCRIPTION_US = 12.0  # to read, send and index one, measured
EVENT_US = 20.0  # to read, send and match
JOINT_MAX = 3
SEPARATE_MAX = 8
# a cell under construction takes so many times its index: its rows, and the builder's memory
ROWS_TOGETHER = 3.0
BUFFERS_MB = 900  # of a worker: Python, its kernels, found positions, answers; 650 to 950 were measured
SHARDS_MAX = 64
EVENTS_ASSUMED = 10_000_000  # of a frame that is not counted
MB = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchSettings:
    """The limits of a match, as the user sets them."""

    index_mb_max: float = INDEX_MB_MAX  # of one index, in one worker
    tasks: int | None = None  # of a divided match; None: four for each core

    def __post_init__(self) -> None:
        """Reject impossible settings."""
        if not self.index_mb_max > 0:
            raise SettingError("--index-mb", self.index_mb_max, "must be more than 0")
        if self.tasks is not None and not 1 <= self.tasks <= 100_000:
            raise SettingError("tasks", self.tasks, "must be from 1 to 100,000")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellShare:
    """A cell as it is distributed: so many shards and salts, and a task for each part."""

    shards: int
    salts: int
    tasks: tuple[int, ...]  # by shard, then by salt


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchPlan:
    """How a match is done, and why."""

    subscriptions: int
    events: int | None  # None: they were not counted
    index_mb: float  # of all subscriptions
    index_mb_max: float
    groups: tuple[CellGroup, ...] = ()  # empty: one index for all
    shares: tuple[CellShare, ...] = ()  # by cell
    tasks: int = 0
    copies: float = 1.0  # of a subscription, on average
    event_copies: float = 1.0
    cell_mb_max: float = 0.0
    task_share_max: float = 0.0  # of all work, expected of the task with the most
    is_repeated: bool = False  # whether a subscriber has several subscriptions
    # divisions that were tried, with their work in seconds
    tried: tuple[tuple[str, float], ...] = ()

    @property
    def is_divided(self) -> bool:
        """Return whether subscriptions are divided into cells."""
        return bool(self.groups)

    @property
    def worker_mb(self) -> float:
        """Return how much memory a worker process is expected to need."""
        return BUFFERS_MB + (ROWS_TOGETHER * self.cell_mb_max if self.is_divided else self.index_mb)

    def facts(self) -> dict[str, Any]:
        """Return the facts that --explain prints."""
        facts: dict[str, Any] = {
            "way": "divided into cells" if self.is_divided else "one index for all",
            "because": self._reason(),
            "subscriptions": self.subscriptions,
            "events": self.events,
            "index_mb": round(self.index_mb, 1),
            "index_mb_max": self.index_mb_max,
            "worker_mb_expected": round(self.worker_mb),
        }
        if self.is_divided:
            facts |= {
                "groups": [
                    {"divided_by": list(map(attribute_name, group.attributes)), "cells": len(group)}
                    for group in self.groups
                ],
                "cells": len(self.shares),
                "copies_of_a_subscription": round(self.copies, 2),
                "copies_of_an_event": round(self.event_copies, 2),
                "cell_mb_max": round(self.cell_mb_max, 1),
                "cells_in_shards": sum(each.shards > 1 for each in self.shares),
                "cells_in_salts": sum(each.salts > 1 for each in self.shares),
                "tasks": self.tasks,
                "task_share_max_expected": round(self.task_share_max, 3),
                "work_s_of_ways_tried": {name: round(work_s, 1) for name, work_s in self.tried},
            }
        return facts

    def _reason(self) -> str:
        larger = "more" if self.is_divided else "no more"
        return f"the index takes about {self.index_mb:,.0f} MB, {larger} than {self.index_mb_max:,.0f} MB"


def attribute_name(attribute: str) -> str:
    """Return the name of an attribute for people."""
    return "topic" if attribute == WHOLE_TOPIC else attribute


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Some subscriptions and some events, and how many there are of each.

    Events of a lazy frame are neither read nor counted: then `EVENTS_ASSUMED` are expected, in each cell as
    large a share of them as of the subscriptions.
    """

    sampled: SubscriptionColumns
    subscriptions: int
    bytes_each: float  # of an index
    happened: EventColumns | None
    events: int | None

    @property
    def events_expected(self) -> int:
        """Return the number of events, as far as it is known."""
        return EVENTS_ASSUMED if self.events is None else self.events

    def event_shares(self, groups: Sequence[CellGroup], rows: Numbers) -> Numbers:
        """Return the share of the events that go to each cell, which holds so many subscriptions."""
        if self.happened is not None:
            cells = cells_of_events(groups, self.happened)
            counts = np.bincount(cells.ravel(), minlength=len(rows))
            return np.asarray(counts / max(cells.shape[1], 1), np.float64)
        shares = np.empty(len(rows))
        for group in groups:
            here = slice(group.first_cell, group.first_cell + len(group))
            shares[here] = (rows[here] + 1.0) / (rows[here] + 1.0).sum()
        return shares


def divided_plan(sample: Sample, settings: MatchSettings, tasks: int, *, is_repeated: bool) -> MatchPlan:
    """Return the plan with the least work among several divisions."""
    index_mb = sample.subscriptions * sample.bytes_each / MB
    rows_max = settings.index_mb_max * MB / ROWS_TOGETHER / sample.bytes_each
    scale = sample.subscriptions / max(len(sample.sampled), 1)
    best: MatchPlan | None = None
    tried: list[tuple[str, float]] = []
    for name, groups in _divisions(sample.sampled, rows_max / scale):
        plan, work_s = _handed_out(sample, groups, rows_max, tasks, settings, index_mb)
        tried.append((name, work_s))
        if best is None or work_s < min(each for _, each in tried[:-1]):
            best = plan
    assert best is not None
    return replace(best, tried=tuple(tried), is_repeated=is_repeated)


def _divisions(subscriptions: SubscriptionColumns, rows_max: float) -> list[tuple[str, Sequence[CellGroup]]]:
    """Return divisions of the sample, by name."""
    names = dict.fromkeys((WHOLE_TOPIC, *subscriptions.lows, *subscriptions.highs))
    for wanted in subscriptions.filters.values():
        names |= dict.fromkeys(sorted(wanted.attributes()))
    found = [(dimension_of(subscriptions, name), name) for name in names]
    ranked = sorted(
        ((-each[1], name, each[0]) for each, name in found if each is not None), key=lambda t: t[:2]
    )
    dimensions = [dimension for _, _, dimension in ranked]
    divisions: list[tuple[str, Sequence[CellGroup]]] = [
        ("dealt out", [CellGroup(first_cell=0, division=None)])
    ]
    for count in range(1, min(JOINT_MAX, len(dimensions)) + 1):
        chosen = dimensions[:count]
        divisions.append((_named("by", chosen), joint_group(chosen, subscriptions, rows_max)))
    for count in range(2, min(SEPARATE_MAX, len(dimensions)) + 1):
        chosen = dimensions[:count]
        divisions.append((_named("by each of", chosen), separate_groups(chosen, subscriptions, rows_max)))
    return divisions


def _named(how: str, dimensions: Sequence[Any]) -> str:
    return f"{how} {', '.join(attribute_name(each.attribute) for each in dimensions)}"


def _handed_out(
    sample: Sample,
    groups: Sequence[CellGroup],
    rows_max: float,
    tasks: int,
    settings: MatchSettings,
    index_mb: float,
) -> tuple[MatchPlan, float]:
    """Return the plan for these groups, and its work in seconds of one core."""
    cells = sum(len(group) for group in groups)
    scale = sample.subscriptions / max(len(sample.sampled), 1)
    found = np.bincount(cells_of_subscriptions(groups, sample.sampled)[1], minlength=cells)
    rows = np.asarray(found * scale, np.float64)
    events = sample.event_shares(groups, rows) * sample.events_expected
    shards = np.clip(np.ceil(rows / rows_max), 1, SHARDS_MAX).astype(np.int64)
    whole_us = float((rows * SUBSCRIPTION_US + events * shards * EVENT_US).sum())
    salts = np.clip(np.ceil(events * EVENT_US / max(whole_us / tasks, 1.0)), 1, tasks).astype(np.int64)
    unit_us = rows / shards * SUBSCRIPTION_US + events / salts * EVENT_US
    placed, loads = _placed(unit_us, shards * salts, tasks)
    shares = tuple(
        CellShare(shards=int(shards[cell]), salts=int(salts[cell]), tasks=placed[cell])
        for cell in range(cells)
    )
    work_us = float((unit_us * shards * salts).sum())
    plan = MatchPlan(
        subscriptions=sample.subscriptions,
        events=sample.events,
        index_mb=index_mb,
        index_mb_max=settings.index_mb_max,
        groups=tuple(groups),
        shares=shares,
        tasks=tasks,
        copies=float((rows * salts).sum()) / max(sample.subscriptions, 1),
        event_copies=float((events * shards).sum()) / max(sample.events_expected, 1),
        cell_mb_max=float((rows / shards).max()) * sample.bytes_each / MB,
        task_share_max=float(loads.max()) / max(work_us, 1.0),
    )
    return plan, work_us / 1e6


def _placed(unit_us: Numbers, units: Integers, tasks: int) -> tuple[list[tuple[int, ...]], Numbers]:
    """Assign each unit of each cell to the task with the least work so far, the largest first."""
    loads = np.zeros(tasks)
    placed: list[list[int]] = [[] for _ in units]
    for cell in np.argsort(-unit_us, kind="stable").tolist():
        for _ in range(int(units[cell])):
            lightest = int(loads.argmin())
            loads[lightest] += unit_us[cell]
            placed[cell].append(lightest)
    return [tuple(each) for each in placed], loads


def tasks_for(cores: int, settings: MatchSettings, index_mb: float) -> int:
    """Return how many tasks share a divided match: enough for all cores, and for cells that fit."""
    fitting = math.ceil(ROWS_TOGETHER * index_mb / settings.index_mb_max)
    return settings.tasks or max(4 * cores, fitting)
