"""`betimes network`: run a network of brokers on this machine, one process each."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from betimes.cli.broker import read_access_control, read_every
from betimes.language.files.scenario_file import read_scenario
from betimes.language.files.server_file import PORT_MAX
from betimes.model.errors import BetimesError, SettingError
from betimes.model.server_settings import ServerSettings
from betimes.model.topology import LayeredWorld, Scenario
from betimes.terminal.broker_options import (
    Access,
    Accounts,
    Anonymous,
    Passwords,
    Telemetry,
    TelemetryEvery,
    Verbose,
)
from betimes.terminal.files import read_text_file
from betimes.terminal.fleet import BROKERS_MAX, HOST, Fleet, FleetPlan, free_ports, make_folder
from betimes.terminal.server_settings import WAYS_IN, read_secret
from betimes.terminal.serving import check_free, told_to_end
from betimes.terminal.terminal import examples, print_notice, print_table

WATCH_EVERY_S = 0.5

EXAMPLES = examples(
    "betimes network examples/city.toml --anonymous",
    "betimes network examples/city.toml --anonymous --port 2000 --strategy fifo",
    "betimes network examples/city.toml --anonymous --fetch '#' --metrics-port 9101",
    "betimes network examples/city.toml --passwords broker.passwords --unlimited",
)

Fetch = Annotated[
    list[str] | None,
    typer.Option(
        "--fetch", help="Topics that every broker keeps, to resume at any of them. May be repeated."
    ),
]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        help="Metrics port of the first broker; the others follow; 0: free ones. For `betimes dashboard`.",
    ),
]
TelemetryShare = Annotated[
    float, typer.Option("--telemetry-share", help="The share of events to record.", min=1e-6, max=1.0)
]
ControlSecretFile = Annotated[
    Path | None,
    typer.Option(
        "--control-secret", help="The secret file for `betimes control`; created if it does not exist."
    ),
]


def network_command(
    topology: Annotated[
        Path, typer.Argument(help="A scenario file with brokers and links.", metavar="TOPOLOGY.toml")
    ],
    port: Annotated[
        int, typer.Option("--port", "-p", help="Port of the first broker; the others follow; 0: free ones.")
    ] = 1883,
    strategy: Annotated[
        str, typer.Option("--strategy", help="The scheduling strategy, as in `betimes simulate`.")
    ] = "late-binding",
    unlimited: Annotated[
        bool, typer.Option("--unlimited", help="Do not limit links to the rates in the file.")
    ] = False,
    anonymous: Anonymous = False,
    passwords: Passwords = None,
    access: Access = None,
    accounts: Accounts = None,
    telemetry: Telemetry = None,
    telemetry_share: TelemetryShare = 0.01,
    metrics_port: MetricsPort = None,
    store: Annotated[
        Path | None, typer.Option("--store", help="A directory for the stores, which survive a restart.")
    ] = None,
    telemetry_every: TelemetryEvery = None,
    control_secret: ControlSecretFile = None,
    fetch: Fetch = None,
    seed: Annotated[
        int, typer.Option("--seed", help='The seed of the network, if the file has a table "generate".')
    ] = 1,
    verbose: Verbose = False,
) -> None:
    """Run every broker of a topology as a process on this machine, with its links, until Ctrl-C.

    Use it to try a network before you install it. Any MQTT client connects to any broker. Links are limited
    to the rate in the file, in both directions; their deviation and delay are those of this machine. The
    command ignores publishers and subscribers in the file: start your own clients. It restarts a broker that
    dies.
    """
    from betimes.scheduling.strategies import strategy_named

    strategy_named(strategy)
    world = _scenario(topology, seed)
    settings = _settings(passwords, access, accounts, control_secret, anonymous=anonymous)
    if telemetry is not None:
        make_folder(telemetry)
    ports = _ports(world.brokers, port, "--port")
    plan = FleetPlan(
        ports=ports,
        links=world.links,
        strategy=strategy,
        is_limited=not unlimited,
        settings=settings,
        own_settings=_metrics(ports, metrics_port),
        stores=store,
        fetch=tuple(fetch or ()),
        options=_options(telemetry, telemetry_share, telemetry_every, verbose=verbose),
    )
    run_network(plan)


def _settings(
    passwords: Path | None,
    access: Path | None,
    accounts: Path | None,
    control_secret: Path | None,
    *,
    anonymous: bool,
) -> dict[str, Any]:
    """Return the access settings of every broker's file."""
    if not anonymous and passwords is None:
        raise BetimesError(f"these brokers would reject every client\nhint: {WAYS_IN}")
    settings: dict[str, Any] = {"anonymous": anonymous}
    for key, path in (("passwords", passwords), ("access", access), ("accounts", accounts)):
        if path is not None:
            settings[key] = str(path.resolve())
    read_access_control(ServerSettings(**settings))  # report a mistake in a file once, not once a broker
    if control_secret is not None:
        settings["control_secret_file"] = str(_made_secret(control_secret).resolve())
    return settings


def _made_secret(path: Path) -> Path:
    """Return the secret file; create it, readable by its owner only, if it does not exist."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_hex(16) + "\n")
    except FileExistsError:
        read_secret(path, "--control-secret")
    except OSError as error:
        raise BetimesError(f"{path}: cannot be written ({error.strerror})") from None
    return path


def _options(telemetry: Path | None, share: float, every: str | None, *, verbose: bool) -> tuple[str, ...]:
    """Return the command-line options of every broker."""
    options = ["--verbose"] if verbose else []
    if telemetry is not None:
        options += ["--telemetry", str(telemetry.resolve()), "--telemetry-share", str(share)]
    if every is not None:
        if telemetry is None:
            raise SettingError("--telemetry-every", every, "needs --telemetry")
        read_every(every)
        options += ["--telemetry-every", every]
    return tuple(options)


def run_network(plan: FleetPlan) -> None:
    """Run the brokers of a plan until SIGINT or SIGTERM."""
    with told_to_end() as ending, Fleet(plan) as fleet:
        rows = [
            [name, f"{HOST}:{port}", *(f"{HOST}:{each}" for each in plan.own_settings.get(name, {}).values())]
            for name, port in plan.ports.items()
        ]
        print_table("brokers", ["name", "MQTT at", *(["metrics at"] if plan.own_settings else [])], rows)
        print_notice("all brokers are up; Ctrl-C stops them")
        while not ending.wait(WATCH_EVERY_S):
            for said in fleet.tend():
                print_notice(said)


def _scenario(topology: Path, seed: int) -> Scenario:
    world = read_scenario(read_text_file(topology), str(topology), is_live=True)
    if isinstance(world, LayeredWorld):
        if sum(world.layers) > BROKERS_MAX:
            raise BetimesError(f"{topology}: at most {BROKERS_MAX} brokers run on one machine")
        from betimes.simulator.worlds import make_scenario

        return make_scenario(world, seed)
    return world


def _metrics(ports: Mapping[str, int], first: int | None) -> dict[str, dict[str, int]]:
    """Return the metrics port of each broker, as settings of its file."""
    if first is None:
        return {}
    found = _ports(list(ports), first, "--metrics-port")
    if both := set(found.values()) & set(ports.values()):
        hint = f"for example {max(ports.values()) + 1}"
        raise SettingError("--metrics-port", first, f"port {min(both)} is an MQTT port", hint)
    return {name: {"metrics_port": port} for name, port in found.items()}


def _ports(brokers: Sequence[str], first: int, option: str) -> dict[str, int]:
    """Return a port for each broker; raise an error for a port in use before any broker starts."""
    if not 0 <= first <= PORT_MAX - len(brokers):
        raise SettingError(option, first, f"must leave room for {len(brokers)} ports up to {PORT_MAX}")
    ports = free_ports(len(brokers)) if first == 0 else range(first, first + len(brokers))
    for port in ports:
        check_free(HOST, port, option)
    return dict(zip(brokers, ports, strict=True))
