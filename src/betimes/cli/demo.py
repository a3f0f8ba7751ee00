"""`betimes demo`: replay real flights over live brokers, under two scheduling strategies."""

from __future__ import annotations

from typing import Annotated

import typer

from betimes.cli.figure import DEFAULT_OUT, OutOption
from betimes.model.errors import SettingError
from betimes.terminal.spark_options import MasterOption, RemoteOption
from betimes.terminal.terminal import JsonOption, examples, print_json

SECONDS = 20.0
SECONDS_MIN, SECONDS_MAX = 1.0, 600.0

EXAMPLES = examples(
    "betimes demo",
    "betimes demo --seconds 60 --json",
    "betimes demo --simulated --out pictures",
)


def demo_command(
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", help=f"Seconds of each replay: {SECONDS:g}; a second is 50 minutes of 2013."
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Run the network of Wang et al. (2006) on Spark instead.")
    ] = False,
    out: OutOption = DEFAULT_OUT,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replay a day of real flights over live brokers: first come, first served, then by late binding.

    Six brokers run on this machine, as in examples/flights.toml; two of their links can carry about half of
    what is published. Twelve subscribers ask for different flights, with bounds of 0.3 to 5 s and prices from
    1 to 10. After the first part, Spark learns from the telemetry, and a twin of the network predicts the
    second part. In the second part, a traveller disconnects and resumes at another broker, a subscriber has
    guaranteed bandwidth, and the broker refuses a subscriber that asks for too much. The tables at the end
    show what arrived in time and what it earned, measured at the subscribers; the page OUT/demo/report.html
    shows more. The command stops all brokers.

    --master and --remote need --simulated, which runs three strategies on simulated brokers.
    """
    if simulated:
        from betimes.demo.simulated import simulated_demo

        if seconds is not None:
            raise SettingError("--seconds", seconds, "cannot be combined with --simulated")
        simulated_demo(out, master=master, remote=remote, as_json=as_json)
        return
    for option, value in (("--master", master), ("--remote", remote)):
        if value is not None:
            raise SettingError(option, value, "needs --simulated", "live brokers run on this machine")
    seconds = SECONDS if seconds is None else seconds
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise SettingError("--seconds", seconds, f"must be between {SECONDS_MIN:g} and {SECONDS_MAX:g}")
    from betimes.demo.live import print_live_demo, run_live_demo

    run = run_live_demo(seconds, out)
    if as_json:
        print_json(run.as_json())
    else:
        print_live_demo(run)
