"""Does the dashboard work in a real browser, and show the very numbers of its brokers?"""

from __future__ import annotations

import asyncio
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.shells import COMMAND, WITHIN_S
from tests.pipeline.report_tables import NASTY, make_tables
from tests.reporting.browsers import browser_path, opened_page

import betimes
from betimes.broker.access.passwords import PasswordFile
from betimes.model.errors import BetimesError
from betimes.model.topology import Link
from betimes.reporting.dashboard.broker_watch import BrokerFacts, read_metrics
from betimes.reporting.dashboard.feed import Feed
from betimes.reporting.dashboard.page import WRONG, read_attributes, tables_note
from betimes.terminal.fleet import Fleet, FleetPlan, free_ports

EVENTS, FAST = 60, 1e-4


@dataclass(frozen=True)
class Running:
    """Two brokers and a dashboard."""

    address: str
    brokers: tuple[str, ...]  # where clients connect
    metrics: tuple[str, ...]

    def facts(self) -> list[BrokerFacts]:
        texts = [urllib.request.urlopen(each, timeout=10.0).read().decode() for each in self.metrics]
        return [read_metrics(text) for text in texts]


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Running]:
    browser_path()  # without a browser nothing is started
    folder: Path = tmp_path_factory.mktemp("dashboard")
    (folder / "passwords").write_text(PasswordFile().with_user("ann", b"secret").text())
    make_tables(folder / "tables")
    a, b, metrics_a, metrics_b, page = free_ports(5)
    links = tuple(Link(source=x, target=y, s_per_kb_mean=FAST) for x, y in (("a", "b"), ("b", "a")))
    plan = FleetPlan(
        ports={"a": a, "b": b},
        links=links,
        settings={"anonymous": True},
        own_settings={"a": {"metrics_port": metrics_a}, "b": {"metrics_port": metrics_b}},
    )
    arguments = ["--metrics", f"127.0.0.1:{metrics_a}", "--metrics", f"127.0.0.1:{metrics_b}"]
    arguments += ["--url", f"mqtt://127.0.0.1:{a}", "--tables", str(folder / "tables"), "--port", str(page)]
    with Fleet(plan):
        command = [*COMMAND, "dashboard", *arguments, "--users", str(folder / "passwords")]
        # NiceGUI behaves differently where it takes itself to be under test.
        settings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        dashboard = subprocess.Popen(command, cwd=folder, env=settings)
        try:
            address = f"http://127.0.0.1:{page}"
            wait_for(lambda: urllib.request.urlopen(address, timeout=5.0).status == 200)
            yield Running(
                address,
                (f"mqtt://127.0.0.1:{a}", f"mqtt://127.0.0.1:{b}"),
                tuple(f"http://127.0.0.1:{port}/metrics" for port in (metrics_a, metrics_b)),
            )
        finally:
            dashboard.terminate()
            dashboard.wait(WITHIN_S)


def wait_for(is_so) -> None:
    """Wait until something is so; what fails meanwhile is not so yet."""
    end_s = time.monotonic() + WITHIN_S
    while time.monotonic() < end_s:
        try:
            if is_so():
                return
        except (OSError, AssertionError):
            pass
        time.sleep(0.2)
    assert is_so()


def talk(there: Running) -> None:
    """Talk in a thread of its own: the browser's driver has a loop in this one."""
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: asyncio.run(asyncio.wait_for(_talk(there), WITHIN_S))).result()


async def _talk(there: Running) -> None:
    """Let somebody at one broker hear what is published at the other."""
    async with (
        betimes.connect(there.brokers[1]) as reader,
        betimes.connect(there.brokers[0]) as writer,
        reader.subscribe("talk/#", max_delay="30s", price=3) as messages,
    ):
        await asyncio.sleep(1.0)  # until the other broker knows of it
        for number in range(EVENTS):
            await writer.publish("talk/1", f"message {number}", attributes={"speed": number}, qos=1)
        left = EVENTS
        async for _ in messages:
            left -= 1
            if not left:
                return


@pytest.mark.live
def test_the_page_shows_the_brokers_own_numbers_without_errors_and_without_jumps(running):
    talk(running)
    with opened_page(running.address) as (page, wrong):
        brokers = page.get_by_test_id("brokers")
        wait_for(lambda: brokers.inner_text() == "2 of 2")
        sent = sum(each.sent for each in running.facts())
        earned = sum(each.earned for each in running.facts())
        assert sent >= EVENTS
        assert earned >= 3 * EVENTS
        wait_for(lambda: page.get_by_test_id("sent").inner_text() == f"{sent:,.0f}")
        assert page.get_by_test_id("earned").inner_text() == f"{earned:,.0f}"
        assert page.get_by_test_id("lost").inner_text() == "0"
        assert page.get_by_test_id("on-time").inner_text() == "100.0%"
        wait_for(lambda: page.locator("canvas").count() == 4)
        before = [each.bounding_box() for each in page.locator(".q-card").all()]
        page.wait_for_timeout(2500)
        assert [each.bounding_box() for each in page.locator(".q-card").all()] == before
        assert wrong == []


@pytest.mark.live
def test_subscribers_are_shown_and_a_nasty_name_stays_a_name(running):
    with opened_page(running.address) as (page, wrong):
        wait_for(lambda: page.get_by_text(NASTY).count() == 1)
        assert page.get_by_text("0.600").count() == 1
        assert wrong == []


@pytest.mark.live
def test_a_filter_with_a_mistake_shows_its_place_and_a_right_one_brings_messages(running):
    with opened_page(running.address) as (page, wrong):
        box = page.get_by_test_id("filter")
        box.focus()
        page.keyboard.type("speed >> 50")
        problem = page.get_by_test_id("filter-problem")
        wait_for(lambda: "speed >> 50\n         ^" in problem.inner_text())
        page.get_by_test_id("tap").press("Enter")
        wait_for(lambda: page.get_by_test_id("tap").inner_text().upper() == "START")
        box.fill("speed >= 50")
        wait_for(lambda: problem.inner_text() == "")
        page.get_by_test_id("tap").press("Enter")
        wait_for(lambda: page.get_by_test_id("tap").inner_text().upper() == "STOP")
        talk(running)
        messages = page.get_by_test_id("messages")
        wait_for(lambda: "message 59" in messages.inner_text())
        assert "message 49" not in messages.inner_text()
        box.fill("speed >= 57")
        box.press("Enter")  # listens anew, to this one
        wait_for(lambda: "message 59" not in messages.inner_text())
        talk(running)
        wait_for(lambda: "message 59" in messages.inner_text())
        assert "message 56" not in messages.inner_text()
        assert wrong == []


@pytest.mark.live
def test_nothing_can_be_published_before_one_logs_in(running):
    with opened_page(running.address) as (page, _):
        assert page.get_by_test_id("whose").inner_text() == "read-only"
        assert not page.get_by_test_id("publish-topic").is_visible()
        for password, comes_in in (("guess", False), ("secret", True)):
            page.get_by_role("button", name="Log in").first.click()
            page.get_by_test_id("user").fill("ann")
            page.get_by_test_id("password").fill(password)
            page.get_by_test_id("log-in").click()
            if not comes_in:
                page.get_by_text(WRONG).wait_for(timeout=1000 * WITHIN_S)
        wait_for(lambda: page.get_by_test_id("whose").inner_text() == "ann")
        page.get_by_test_id("publish-topic").fill("said/here")
        page.get_by_test_id("publish-text").fill("hello")
        before = sum(each.received for each in running.facts())
        page.get_by_role("button", name="Publish").click()
        wait_for(lambda: sum(each.received for each in running.facts()) == before + 1)


@pytest.mark.live
def test_the_page_is_dark_where_the_browser_is(running):
    with opened_page(running.address) as (page, _):

        def paper() -> str:
            return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

        page.emulate_media(color_scheme="light")
        light = paper()
        page.emulate_media(color_scheme="dark")
        wait_for(lambda: paper() != light)


def test_an_empty_column_of_shares_is_explained():
    feed = Feed([], None, None)
    assert "--tables" in tables_note(feed)
    feed.subscribers = [{"promised": None, "predicted": None}, {"promised": None, "predicted": None}]
    assert tables_note(feed) == (
        "No subscriber was admitted with an on-time share. "
        "The tables have no predictions: betimes control makes them."
    )
    feed.subscribers[0]["predicted"] = 0.5
    assert tables_note(feed) == "No subscriber was admitted with an on-time share."
    feed.subscribers[1]["promised"] = 0.9
    assert tables_note(feed) == ""
    feed.tables_problem = "gone"
    assert tables_note(feed) == "gone"


def test_attributes_are_read_as_they_are_written():
    assert read_attributes("") == {}
    assert read_attributes("speed=61, kind = car,") == {"speed": 61.0, "kind": "car"}
    with pytest.raises(BetimesError, match="not name=value"):
        read_attributes("speed")
