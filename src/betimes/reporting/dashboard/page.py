"""The dashboard's page in a browser, updated every second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nicegui import run, ui

from betimes.broker.access.passwords import PasswordFile
from betimes.client.connection import connect
from betimes.language.files.table_reader import WrongValueError
from betimes.model.errors import BetimesError
from betimes.model.events import number_reading
from betimes.reporting.dashboard import charts
from betimes.reporting.dashboard.broker_watch import LinkNow
from betimes.reporting.dashboard.event_tap import EventTap, filter_problem, topic_problem
from betimes.reporting.dashboard.feed import LOOK_EVERY_S, Feed

CARD = "w-full overflow-auto"
ROWS = 10  # of a table at once
TABLE = "dense hide-no-data :rows-per-page-options=[]"
CELL = "max-width: 24rem; overflow: hidden; text-overflow: ellipsis"  # longer texts end in dots
WRONG = "wrong user or password"


class DashboardPage:
    """One browser's page."""

    def __init__(self, feed: Feed, users: PasswordFile | None) -> None:
        self._feed = feed
        self._users = users
        self._user = ""  # the user that is logged in on this page
        self._tap = None if feed.place is None else EventTap(feed.place)
        self._tap_seen = (-1, "")

    def build(self) -> None:
        """Build the layout; every box has a fixed height, so that the page does not jump."""
        ui.dark_mode(value=None)  # as the browser's setting
        with ui.header().classes("items-center justify-between"):
            ui.label("Betimes").classes("text-lg font-bold")
            with ui.row().classes("items-center"):
                self._whose = ui.label("read-only").props("data-testid=whose")
                if self._users is not None:
                    self._login_button = ui.button("Log in", on_click=self._log_in_or_out)
        with ui.column().classes("w-full max-w-screen-2xl mx-auto gap-4"):
            self._build_numbers()
            with ui.grid().classes("w-full grid-cols-1 lg:grid-cols-2 gap-4"):
                self._network = self._chart("The network", "network: brokers, links and their load")
                self._share = self._chart("On-time share", "on-time share over time")
                self._earning = self._chart("Earned per second", "earning over time")
                self._drops = self._chart("Dropped, by reason", "messages dropped by reason")
            self._build_tables()
            self._build_tap()
            self._build_publishing()
        ui.timer(LOOK_EVERY_S, self.refresh)
        ui.context.client.on_disconnect(self._leave)
        self.refresh()

    def _build_numbers(self) -> None:
        self._numbers: dict[str, ui.label] = {}
        names = {
            "on-time": "on time, since the start",
            "sent": "messages delivered",
            "lost": "dropped",
            "earned": "earned",
            "queue": "waiting for links",
            "brokers": "brokers",
        }
        with ui.grid().classes("w-full grid-cols-2 md:grid-cols-3 lg:grid-cols-6 gap-4"):
            for key, text in names.items():
                with ui.card().classes("h-32 md:h-24"):
                    number = ui.label("-").classes("text-2xl tabular-nums")
                    self._numbers[key] = number.props(f"data-testid={key}")
                    ui.label(text).classes("text-sm opacity-70")
        self._silent = ui.label("").classes("h-6 text-orange-600").props("role=status data-testid=silent")

    def _chart(self, title: str, about: str) -> ui.echart:
        with ui.card().classes("w-full"):
            ui.label(title).classes("font-bold")
            return ui.echart({}).classes("w-full h-64").props(f'role=img aria-label="{about}"')

    def _build_tables(self) -> None:
        with ui.card().classes(f"{CARD} h-[28rem]"):
            ui.label("Subscribers").classes("font-bold")
            self._tables_note = ui.label("").classes("text-sm opacity-70")
            names = ("subscriber", "home", "promised", "predicted", "measured", "wanted", "earning")
            self._subscribers = _table(*names)
        with ui.card().classes(f"{CARD} h-72"):
            ui.label("Alarms").classes("font-bold")
            self._alarms_note = ui.label("").classes("text-sm opacity-70")
            self._alarms = _table("state", "subscriber", "home", "measured", "predicted", shown=5)

    def _build_tap(self) -> None:
        with ui.card().classes("w-full"):
            ui.label("Event tap").classes("font-bold")
            if self._tap is None:
                ui.label("Pass a broker with --url to see live messages.")
                return
            with ui.row().classes("w-full items-start"):
                self._topic = ui.input("topics", value="#").props("data-testid=topic").classes("w-64")
                example = "speed > 50 AND kind = 'car'"
                box = ui.input("filter", placeholder=example, on_change=self._look_at_filter)
                self._filter = box.props("data-testid=filter spellcheck=false").classes("grow font-mono")
                for box in (self._topic, self._filter):
                    box.on("keydown.enter", self._start_anew)
                self._tap_button = ui.button("Start", on_click=self._start_or_stop).props("data-testid=tap")
            problem = ui.label("").props("role=alert data-testid=filter-problem")
            self._filter_problem = problem.classes(
                "h-20 overflow-auto whitespace-pre font-mono text-sm text-orange-600"
            )
            names = ("number", "topic", "id", "age", "attributes", "payload")
            self._messages = _table(*names, key="number").classes("h-96").props("data-testid=messages")

    def _build_publishing(self) -> None:
        self._publishing = ui.card().classes("w-full")
        self._publishing.set_visibility(False)
        with self._publishing:
            ui.label("Publish").classes("font-bold")
            with ui.row().classes("w-full items-center"):
                topic = ui.input("topic").props("data-testid=publish-topic")
                text = ui.input("message").props("data-testid=publish-text").classes("grow")
                attributes = ui.input("attributes", placeholder="speed=61, kind=car").classes("grow")
                boxes = (topic, text, attributes)
                ui.button("Publish", on_click=lambda: self._publish(*(box.value for box in boxes)))

    # --- updates and actions

    def refresh(self) -> None:
        """Update all parts of the page."""
        watch = self._feed.watch
        moment = watch.history[-1] if watch.history else None
        if moment is not None:
            wanted = moment.sent + moment.lost
            self._numbers["on-time"].set_text(f"{moment.sent / wanted:.1%}" if wanted else "-")
            self._numbers["sent"].set_text(f"{moment.sent:,.0f}")
            self._numbers["lost"].set_text(f"{moment.lost:,.0f}")
            self._numbers["earned"].set_text(f"{moment.earned:,.0f}")
        self._numbers["queue"].set_text(f"{sum(each.queue for each in watch.brokers.values()):,.0f}")
        self._numbers["brokers"].set_text(f"{len(watch.brokers)} of {len(watch.brokers) + len(watch.silent)}")
        silent = "; ".join(f"{address}: {why}" for address, why in watch.silent.items())
        down = ", ".join(f"{link.source} → {link.target}" for link in watch.links() if not link.is_up)
        problems = [f"No answer from {silent}"] if silent else []
        problems += [f"Links down: {down}"] if down else []
        self._silent.set_text("; ".join(problems))
        self._set(self._network, charts.network_options(watch))
        self._set(self._share, charts.share_options(watch.history))
        self._set(self._earning, charts.earning_options(watch.history))
        self._set(self._drops, charts.drops_options(watch.lost() if watch.brokers else None))
        self._refresh_tables()
        self._refresh_tap()

    def _set(self, chart: ui.echart, options: dict[str, Any]) -> None:
        if chart.options != options:
            chart.options.clear()
            chart.options.update(options)
            chart.update()

    def _refresh_tables(self) -> None:
        feed = self._feed
        rows = [_subscriber_row(each) for each in feed.subscribers]
        if self._subscribers.rows != rows:
            self._subscribers.rows = rows
        self._tables_note.set_text(tables_note(feed))
        down = [link for link in feed.watch.links() if not link.is_up]
        alarms = [_link_row(link) for link in down]
        alarms += [_alarm_row(number, each) for number, each in enumerate(feed.alarms) if "link" not in each]
        if self._alarms.rows != alarms:
            self._alarms.rows = alarms
        quiet = "No alarms." if feed.alarms_are_heard else "No connection to a broker for alarms: pass --url."
        self._alarms_note.set_text("" if alarms and feed.alarms_are_heard else quiet)

    def _refresh_tap(self) -> None:
        tap = self._tap
        if tap is None or self._tap_seen == (tap.count, tap.problem):
            return
        self._tap_seen = (tap.count, tap.problem)
        self._messages.rows = list(tap.rows)
        if tap.problem:
            self._filter_problem.set_text(tap.problem)

    def _look_at_filter(self) -> None:
        self._filter_problem.set_text(filter_problem(self._filter.value or ""))

    async def _start_or_stop(self) -> None:
        assert self._tap is not None, "the button exists only with a tap"
        if self._tap.is_open:
            await self._tap.stop()
            self._tap_button.set_text("Start")
        else:
            await self._start_anew()

    async def _start_anew(self) -> None:
        """Subscribe to the topic and filter in the boxes, unless one has a mistake."""
        assert self._tap is not None, "the boxes exist only with a tap"
        problem = topic_problem(self._topic.value or "") or filter_problem(self._filter.value or "")
        self._filter_problem.set_text(problem)
        if not problem:
            await self._tap.start(self._topic.value, self._filter.value or "")
            self._tap_button.set_text("Stop")

    async def _leave(self) -> None:
        if self._tap is not None:
            await self._tap.stop()

    async def _log_in_or_out(self) -> None:
        if self._user:
            self._set_user("")
            return
        with ui.dialog() as dialog, ui.card():
            user = ui.input("user").props("autofocus data-testid=user")
            password = ui.input("password", password=True).props("data-testid=password")
            password.on("keydown.enter", lambda: dialog.submit("asked"))
            ui.button("Log in", on_click=lambda: dialog.submit("asked")).props("data-testid=log-in")
        if await dialog and self._users is not None:
            # checking a password is slow on purpose
            known = await run.io_bound(self._users.verify, user.value or "", (password.value or "").encode())
            if known:
                self._set_user(user.value)
            else:
                ui.notify(WRONG, type="negative")

    def _set_user(self, user: str) -> None:
        self._user = user
        self._whose.set_text(user or "read-only")
        self._login_button.set_text("Log out" if user else "Log in")
        self._publishing.set_visibility(bool(user) and self._feed.place is not None)

    async def _publish(self, topic: str, text: str, attributes: str) -> None:
        place = self._feed.place
        if not self._user or place is None:
            return
        try:
            async with connect(place.url, **place.options) as client:
                await client.publish(
                    topic or "", text or "", attributes=read_attributes(attributes or ""), qos=1
                )
            ui.notify("published")
        except (BetimesError, WrongValueError) as error:
            ui.notify(str(error), type="negative")


def read_attributes(text: str) -> dict[str, Any]:
    """Return the attributes in a text box; a value that parses as a number is one.

    >>> read_attributes("speed=61, kind=car")
    {'speed': 61.0, 'kind': 'car'}
    """
    found: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = part.partition("=")
        if not equals or not name.strip():
            raise BetimesError(f"{part!r} is not name=value\nhint: write speed=61, kind=car")
        number = number_reading(value.strip())
        found[name.strip()] = value.strip() if number is None else number
    return found


def tables_note(feed: Feed) -> str:
    """Return the problem with the tables, or why a column of shares is empty."""
    if feed.tables_problem or not feed.subscribers:
        return feed.tables_problem or "Pass the pipeline's tables with --tables."
    empty = {name for name in ("promised", "predicted") if all(row[name] is None for row in feed.subscribers)}
    notes = {
        "promised": "No subscriber was admitted with an on-time share.",
        "predicted": "The tables have no predictions: betimes control makes them.",
    }
    return " ".join(text for name, text in notes.items() if name in empty)


def _table(*names: str, key: str = "key", shown: int = ROWS) -> ui.table:
    shape = {"align": "left", "sortable": True, "style": CELL}
    columns = [{"name": name, "label": name, "field": name, **shape} for name in names]
    return ui.table(columns=columns, rows=[], row_key=key, pagination=shown).classes("w-full").props(TABLE)


def _subscriber_row(row: Mapping[str, Any]) -> dict[str, Any]:
    shares = {name: _share_text(row[name]) for name in ("promised", "predicted", "measured")}
    return {
        **row,
        **shares,
        "wanted": f"{row['wanted']:,.0f}",
        "earning": f"{row['earning']:,.0f}",
        "key": f"{row['subscriber']} at {row['home']}",
    }


def _alarm_row(number: int, told: Mapping[str, Any]) -> dict[str, Any]:
    low, high = told.get("predicted_low"), told.get("predicted_high")
    return {
        "key": number,
        "state": str(told.get("state", "")),
        "subscriber": str(told.get("subscriber", "")),
        "home": str(told.get("home", "")),
        "measured": _share_text(told.get("measured")),
        "predicted": _share_text(low) if low == high else f"{_share_text(low)} to {_share_text(high)}",
    }


def _link_row(link: LinkNow) -> dict[str, Any]:
    name = f"link {link.source} → {link.target}"
    return {
        "key": name,
        "state": "down",
        "subscriber": name,
        "home": link.source,
        "measured": "-",
        "predicted": "-",
    }


def _share_text(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, int | float) else "-"
