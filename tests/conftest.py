"""What do tests share? One Spark session, opened when the first test asks for it; and settled chance."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling
from xdist.workermanage import WorkerController

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A shared machine is slow at times: no deadline per example. The same examples on every run.
settings.register_profile("betimes", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=8)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "betimes"))


# What is imported and collected stays: looking again and again whether any of it is garbage takes time.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage from here on, among what tests make."""
    gc.freeze()
    gc.enable()


def pytest_configure() -> None:
    # Workers of pytest-xdist ignore Ctrl-C, and what they start would too; some of it is to be stopped so.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class FewSessions(LoadScopeScheduling):
    """Lets one worker have the files of a folder whose tests share a Spark session, and others go anywhere.

    Two sessions, those of `tests/pipeline` and of all others, are over sooner than one: planning a query
    keeps one core busy. (Groups by mark, which pytest-xdist 3.8 offers, do nothing with pytest 9.)
    A file of short tests goes to a worker as a whole: to be told of each takes longer than many a test.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        path = self.config.rootpath / file
        if _shares_spark(path):
            return "spark, pipeline" if file.startswith("tests/pipeline/") else "spark, others"
        return nodeid if _has_long_tests(path) else file

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget what is done: all that a worker ever had is counted again after each test."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]


@cache
def _shares_spark(file: Path) -> bool:
    return re.search(r"^def \w+\([^)]*\bspark\b", file.read_text(), re.MULTILINE) is not None


@cache
def _has_long_tests(file: Path) -> bool:
    return re.search(r"mark\.(spark|live|figure|long)\b", file.read_text()) is not None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FewSessions:
    """Have two workers open Spark, not all, and begin with what was put first, not with the longest files."""
    config.option.loadscopereorder = False
    return FewSessions(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes long, so that nobody waits for it at the end."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if _shares_spark(item.path):
        return 0  # many tests, one after the other
    marks = {mark.name for mark in item.iter_markers()}
    turns = enumerate(({"spark"}, {"live"}, {"figure", "long"}), start=1)
    return next((turn for turn, names in turns if marks & names), 4)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have compiled, before a live test's time runs, what a broker has compiled before it serves."""
    if item.get_closest_marker("live") is not None:
        _warm_up()


@cache
def _warm_up() -> None:
    from betimes.broker.warm_up import warm_up

    warm_up(["late-binding"])


@pytest.fixture(autouse=True)
def same_logs() -> Iterator[None]:
    """Give loggers back as they were: a command that was run in a test has set them up for a process."""
    loggers = [logging.getLogger(name) for name in ("betimes", "asyncio")]
    before = [(each, each.handlers, each.level, each.propagate) for each in loggers]
    yield
    for each, handlers, level, propagate in before:
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from betimes.pipeline.spark.session import open_session
    from betimes.pipeline.telemetry.job import compiling

    session = open_session("betimes tests", master="local[2]")
    with compiling(session, pays=False):  # of a few rows, as in a run of the pipeline
        yield session
    session.stop()
