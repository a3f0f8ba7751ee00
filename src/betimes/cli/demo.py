"""What is it all for? Real events on live brokers, as they come and as we choose: `betimes demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from betimes.cli.figure import DEFAULT_OUT, OutOption
from betimes.model.errors import SettingError
from betimes.terminal.spark_options import MasterOption, RemoteOption
from betimes.terminal.terminal import JsonOption, print_json

SECONDS = 20.0
SECONDS_MIN, SECONDS_MAX = 1.0, 600.0

EXAMPLES = """\
[bold]Examples[/bold]

betimes demo

betimes demo --seconds 60 --json

betimes demo --simulated --out pictures
"""


def demo_command(
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", help=f"How long each replay lasts: {SECONDS:g}; a second is 50 minutes of 2013."
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
    """Replay a day of real flights over live brokers, first come first served and then as we choose.

    Six brokers run on this machine, as in examples/flights.toml; two of their links carry about half of what
    is published. Twelve subscribers ask for different flights, within 0.3 to 5 s, for prices from 1 to 10.
    Between the two, Spark learns from what brokers wrote down, and a twin of the network predicts the second
    part, in which a traveller disappears and resumes at another broker, one subscriber's bandwidth is
    guaranteed, and one who asks for too much is refused. The tables at the end say what arrived in time and
    what it earned, measured at the subscribers; a page, OUT/demo/report.html, shows more. All brokers are
    stopped.

    --master and --remote are for --simulated: three strategies on simulated brokers, and a picture.
    """
    if simulated:
        from betimes.demo.simulated import simulated_demo

        if seconds is not None:
            raise SettingError("--seconds", seconds, "is of no use with --simulated")
        simulated_demo(out, master=master, remote=remote, as_json=as_json)
        return
    for option, value in (("--master", master), ("--remote", remote)):
        if value is not None:
            raise SettingError(option, value, "is of no use without --simulated", "live brokers run here")
    seconds = SECONDS if seconds is None else seconds
    if not SECONDS_MIN <= seconds <= SECONDS_MAX:
        raise SettingError("--seconds", seconds, f"must be between {SECONDS_MIN:g} and {SECONDS_MAX:g}")
    from betimes.demo.live import print_live_demo, run_live_demo

    run = run_live_demo(seconds, out)
    if as_json:
        print_json(run.as_json())
    else:
        print_live_demo(run)
