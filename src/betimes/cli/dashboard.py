"""`betimes dashboard`: serve a web page with the state of live brokers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from betimes.broker.access.passwords import PasswordFile
from betimes.client.addresses import read_address
from betimes.model.errors import SettingError
from betimes.terminal.client_options import CafileOption, PasswordOption, UserOption
from betimes.terminal.files import read_text_file
from betimes.terminal.serving import check_free
from betimes.terminal.terminal import examples, print_notice

if TYPE_CHECKING:
    from betimes.reporting.dashboard.feed import Feed

PORT = 8080
METRICS_MAX = 1_000
AWAY_S_MAX = 30.0  # a browser that reconnects sooner is still logged in, and its tap is still open

EXAMPLES = examples(
    "betimes broker --anonymous --metrics-port 9101",
    "betimes dashboard --metrics 127.0.0.1:9101 --url mqtt://127.0.0.1",
    "betimes dashboard --metrics b1:9101 --metrics b2:9101 --url mqtt://b1 "
    "--tables out/tables --users passwords",
)


def dashboard_command(
    metrics: Annotated[
        list[str],
        typer.Option(
            "--metrics", help="The metrics address of a broker. Repeat it for each.", metavar="HOST:PORT"
        ),
    ],
    url: Annotated[
        str | None,
        typer.Option("--url", "-L", help="The broker for alarms and messages, such as mqtt://host."),
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--tables", help="The pipeline's tables: requested, predicted and measured shares."),
    ] = None,
    users: Annotated[
        Path | None,
        typer.Option(
            "--users", help="Users that may log in and publish: a file of `betimes passwd`.", metavar="FILE"
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", help="The address to listen at; 0.0.0.0 for other machines.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="The page's port.")] = PORT,
    user: UserOption = None,
    password: PasswordOption = None,
    cafile: CafileOption = None,
) -> None:
    """Serve a page with live links, queues, on-time share, earnings, drops, subscribers, alarms and messages.

    The page is read-only; a user in --users can log in and publish. It loads nothing from the Internet: all
    scripts are installed with Betimes. Ctrl-C stops it.
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
    print_notice(f"http://{host}:{port} (Ctrl-C stops it)")
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
    """Return the URL of the metrics, from a host and port or a URL.

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
        raise SettingError("--metrics", text, "is not a host and port", hint)
    return f"{parts.scheme}://{parts.netloc}{parts.path if parts.path not in ('', '/') else '/metrics'}"


def check_port(host: str, port: int) -> None:
    """Raise an error for a port that cannot be used, before the server starts."""
    if not 1 <= port <= 65_535:
        raise SettingError("--port", port, "must be between 1 and 65535", "for example 8080")
    check_free(host, port)
