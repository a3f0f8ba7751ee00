"""How is the network doing, right now? `betimes dashboard`: a page in the browser, from live brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from betimes.broker.access.passwords import PasswordFile
from betimes.client.addresses import read_address
from betimes.model.errors import SettingError
from betimes.terminal.addresses import check_free
from betimes.terminal.client_options import CafileOption, PasswordOption, UserOption
from betimes.terminal.files import read_text_file
from betimes.terminal.terminal import print_notice

if TYPE_CHECKING:
    from betimes.reporting.dashboard.feed import Feed

PORT = 8080
METRICS_MAX = 1_000
AWAY_S_MAX = 30.0  # a browser that comes back sooner is still logged in, and its tap still open

EXAMPLES = """\
[bold]Examples[/bold]

betimes broker --anonymous --metrics-port 9101

betimes dashboard --metrics 127.0.0.1:9101 --url mqtt://127.0.0.1

betimes dashboard --metrics b1:9101 --metrics b2:9101 --url mqtt://b1 --tables out/tables --users passwords
"""


def dashboard_command(
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metrics", help="Where a broker tells its metrics. Say it of each.", metavar="HOST:PORT"
        ),
    ],
    url: Annotated[
        str | None,
        typer.Option("--url", "-L", help="A broker to hear alarms and messages from, such as mqtt://host."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", help="What the pipeline learned: who was promised, predicted and got what."),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            "--users", help="Who may log in, and publish: a file of `betimes passwd`.", metavar="FILE"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="Where to listen; other machines need 0.0.0.0.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The page's port.")] = PORT,
    user: UserOption = None,
    password: PasswordOption = None,
    cafile: CafileOption = None,
) -> None:
    """Show brokers as they are: links, queues, on-time share, earnings, drops, subscribers, alarms, messages.

    Nothing can be changed from the page, unless one logs in as somebody in --users. It needs no network but
    the brokers': all that it is made of is installed with Betimes. Ctrl-C ends it.
    """
    addresses = [metrics_address(each) for each in metrics]
    if len(addresses) > METRICS_MAX:
        raise SettingError("--metrics", len(addresses), f"at most {METRICS_MAX}")
    if url is not None:
        read_address(url)
    known = None if users is None else PasswordFile.read(read_text_file(users), str(users))
    check_port(host, port)
    from betimes.reporting.dashboard.feed import BrokerPlace, Feed

    place = None if url is None else BrokerPlace(url=url, user=user, password=password, ca=cafile)
    print_notice(f"http://{host}:{port} (Ctrl-C ends it)")
    run_dashboard(Feed(addresses, place, tables), known, host, port)


def run_dashboard(feed: Feed, users: PasswordFile | None, host: str, port: int) -> None:
    """Serve pages until interrupted."""
    from nicegui import app, ui

    from betimes.reporting.dashboard.page import DashboardPage

    app.on_startup(feed.start)
    app.on_shutdown(feed.stop)
    ui.run(
        lambda: DashboardPage(feed, users).build(),
        host=host,
        port=port,
        title="Betimes",
        favicon="⏱",
        dark=None,
        reconnect_timeout=AWAY_S_MAX,
        reload=False,
        show=False,
        show_welcome_message=False,
    )


def metrics_address(text: str) -> str:
    """Return where metrics are read, from a host and port or a whole address.

    >>> metrics_address("b1:9101"), metrics_address("http://b1:9101/metrics")
    ('http://b1:9101/metrics', 'http://b1:9101/metrics')
    """
    hint = "for example 127.0.0.1:9101, the broker's --metrics-port"
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        is_right = parts.scheme in ("http", "https") and parts.hostname and parts.port
    except ValueError:
        is_right = False
    if not is_right:
        raise SettingError("--metrics", text, "is no host and port", hint)
    return f"{parts.scheme}://{parts.netloc}{parts.path if parts.path not in ('', '/') else '/metrics'}"


def check_port(host: str, port: int) -> None:
    """Say in one message that a port cannot be had, before anything is begun."""
    if not 1 <= port <= 65_535:
        raise SettingError("--port", port, "must be between 1 and 65535", "for example 8080")
    check_free(host, port)
