"""How does a network of live brokers start on one machine? `betimes network`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from betimes.console.broker import Access, Anonymous, Passwords, Telemetry, Verbose, open_gate
from betimes.console.fleet import BROKERS_MAX, HOST, Fleet, FleetPlan, free_ports, make_folder
from betimes.console.reading import read_text_file
from betimes.console.terminal import print_notice, print_table
from betimes.language.link_settings import PORT_MAX
from betimes.language.scenarios import read_scenario
from betimes.model.errors import BetimesError, SettingError
from betimes.model.servers import ServerSettings
from betimes.model.topology import LayeredWorld, Scenario
from betimes.qos.strategies import strategy_named

WATCH_EVERY_S = 0.5

EXAMPLES = """\
[bold]Examples[/bold]

betimes network examples/city.toml --anonymous

betimes network examples/city.toml --anonymous --port 2000 --strategy fifo

betimes network examples/city.toml --anonymous --fetch '#'

betimes network examples/city.toml --passwords broker.passwords --unlimited
"""

Fetch = Annotated[
    list[str] | None,
    typer.Option("--fetch", help="Topics that each broker keeps: resume anywhere. May be repeated."),
]


def network_command(
    topology: Annotated[
        Path, typer.Argument(help="A scenario file with brokers and links.", metavar="TOPOLOGY.toml")
    ],
    port: Annotated[
        int, typer.Option("--port", "-p", help="Of the first broker, the others follow; 0: free ones.")
    ] = 1883,
    strategy: Annotated[
        str, typer.Option("--strategy", help="How brokers choose what goes next, as in `betimes simulate`.")
    ] = "late-binding",
    unlimited: Annotated[
        bool, typer.Option("--unlimited", help="Let links be as fast as this machine makes them.")
    ] = False,
    anonymous: Anonymous = False,
    passwords: Passwords = None,
    access: Access = None,
    telemetry: Telemetry = None,
    telemetry_share: Annotated[
        float, typer.Option("--telemetry-share", help="Of which share of all events.", min=1e-6, max=1.0)
    ] = 0.01,
    store: Annotated[
        Path | None, typer.Option("--store", help="A directory for what is to survive a restart.")
    ] = None,
    fetch: Fetch = None,
    seed: Annotated[
        int, typer.Option("--seed", help='Of the network, where the file has a table "generate".')
    ] = 1,
    verbose: Verbose = False,
) -> None:
    """Run every broker of a topology as a process of its own, linked as it says, until interrupted.

    Any MQTT client connects to any of them. Links are limited to the rate that the file gives them, in both
    directions (their deviation and delay are left to this machine). Publishers and subscribers in the file
    are for `betimes simulate`: here they are yours to start. A broker that dies is started again.
    """
    if not anonymous and passwords is None:
        hint = "name a password file with --passwords, or let everybody in with --anonymous"
        raise BetimesError(f"nobody could connect to these brokers\nhint: {hint}")
    strategy_named(strategy)
    world = _scenario(topology, seed)
    settings: dict[str, Any] = {"anonymous": anonymous}
    if passwords is not None:
        settings["passwords"] = str(passwords.resolve())
    if access is not None:
        settings["access"] = str(access.resolve())
    open_gate(ServerSettings(**settings))  # what is wrong with a file is told once
    if telemetry is not None:
        make_folder(telemetry)
    plan = FleetPlan(
        ports=_ports(world.brokers, port),
        links=world.links,
        strategy=strategy,
        is_limited=not unlimited,
        settings=settings,
        stores=store,
        fetch=tuple(fetch or ()),
        options=_options(telemetry, telemetry_share, verbose=verbose),
    )
    run_network(plan)


def _options(telemetry: Path | None, share: float, *, verbose: bool) -> tuple[str, ...]:
    """Return what every broker is started with."""
    options = ["--verbose"] if verbose else []
    if telemetry is not None:
        options += ["--telemetry", str(telemetry.resolve()), "--telemetry-share", str(share)]
    return tuple(options)


def run_network(plan: FleetPlan) -> None:
    """Run the brokers of a plan until SIGINT or SIGTERM comes."""
    told_to_end = threading.Event()
    before = [signal.signal(each, lambda *_: told_to_end.set()) for each in (signal.SIGINT, signal.SIGTERM)]
    try:
        with Fleet(plan) as fleet:
            print_table("brokers", ["name", "MQTT at"], [[n, f"{HOST}:{p}"] for n, p in plan.ports.items()])
            print_notice("all brokers are up; Ctrl-C ends them")
            while not told_to_end.wait(WATCH_EVERY_S):
                for said in fleet.tend():
                    print_notice(said)
    finally:
        for each, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
            signal.signal(each, handler)


def _scenario(topology: Path, seed: int) -> Scenario:
    world = read_scenario(read_text_file(topology), str(topology), is_live=True)
    if isinstance(world, LayeredWorld):
        if sum(world.layers) > BROKERS_MAX:
            raise BetimesError(f"{topology}: at most {BROKERS_MAX} brokers run on one machine")
        from betimes.simulator.worlds import make_scenario

        return make_scenario(world, seed)
    return world


def _ports(brokers: Sequence[str], first: int) -> dict[str, int]:
    """Return a port for each broker."""
    if not 0 <= first <= PORT_MAX - len(brokers):
        raise SettingError("--port", first, f"must leave room for {len(brokers)} ports up to {PORT_MAX}")
    ports = free_ports(len(brokers)) if first == 0 else range(first, first + len(brokers))
    return dict(zip(brokers, ports, strict=True))
