"""What do tests share? One Spark session, opened when the first test asks for it; and settled chance."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A shared machine is slow at times: no deadline per example. The same examples on every run.
settings.register_profile("betimes", deadline=None, derandomize=True)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=8)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "betimes"))


def pytest_configure() -> None:
    # Workers of pytest-xdist ignore Ctrl-C, and what they start would too; some of it is to be stopped so.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


class FewSessions(LoadScopeScheduling):
    """Lets one worker have the files of a folder whose tests share a Spark session, and others go anywhere.

    Two sessions, those of `tests/pipeline` and of all others, are over sooner than one: planning a query
    keeps one core busy. (Groups by mark, which pytest-xdist 3.8 offers, do nothing with pytest 9.)
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if not _shares_spark(self.config.rootpath / file):
            return nodeid
        return "spark, pipeline" if file.startswith("tests/pipeline/") else "spark, others"


@cache
def _shares_spark(file: Path) -> bool:
    return re.search(r"^def \w+\([^)]*\bspark\b", file.read_text(), re.MULTILINE) is not None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FewSessions:
    """Have two workers open Spark, not all."""
    return FewSessions(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put first what takes long by itself, a Spark of its own or live brokers: nobody then waits for it."""
    items.sort(key=lambda item: (not _has_own_spark(item), item.get_closest_marker("live") is None))


def _has_own_spark(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None and not _shares_spark(item.path)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have compiled, before a live test's time runs, what a broker has compiled before it serves."""
    if item.get_closest_marker("live") is not None:
        _warm_up()


@cache
def _warm_up() -> None:
    from betimes.server.warming import warm_up

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
    from betimes.pipeline.session import open_session

    session = open_session("betimes tests", master="local[2]")
    yield session
    session.stop()
