"""The table of commands, and the exit code of each outcome.

Exit codes: 0 success, also for commands that run until a signal ends them (broker, network, peer, control);
1 the command ran, but some of its runs failed; 2 wrong input, explained in one message, or a Spark address
that does not answer; 69 the broker cannot be reached; 70 a bug in Betimes, with its traceback; 130
interrupted; 141 the reader of our output closed the pipe.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from betimes import __version__
from betimes.cli import (
    admit,
    broker,
    check,
    control,
    dashboard,
    demo,
    doctor,
    figure,
    filter,  # noqa: A004 -- named after its command
    match,
    network,
    passwd,
    peer,
    pipeline,
    predict,
    pub,
    reference,
    replay,
    report,
    simulate,
    sub,
    telemetry,
    twin,
)
from betimes.client.errors import UnreachableError
from betimes.model.errors import BetimesError
from betimes.terminal.exit_codes import BUG, INTERRUPTED, MISTAKE, READER_GONE, UNAVAILABLE
from betimes.terminal.terminal import print_error, print_notice, results

ABOUT = """\
Publish/subscribe for information that goes stale.

A subscription states a content filter, a delay bound and a price. Betimes routes, schedules and drops \
messages so that as much value as possible arrives in time.
"""

START = """\
[bold]To begin[/bold]

betimes demo: real flights over live brokers, in about two minutes.

betimes simulate examples/city.toml: one simulation of a network.

betimes predict examples/city.toml: the predicted on-time share of each subscriber.

betimes broker --anonymous: a broker for any MQTT client.

betimes network examples/city.toml --anonymous: a network of brokers on this machine.

betimes peer --attribute speed:0..250 --anonymous: a peer of an overlay without brokers.

betimes sub -t 'traffic/#' --filter "speed > 50": subscribe and print messages.

betimes pub -t traffic/a4 -m fast --attribute speed=61: publish a message.

betimes figures: the figures of the papers that can be run.

betimes filter "speed > 50 AND kind = 'car'" --event speed=61,kind=car: explain a filter.

Every command has its own --help with examples.
"""

UNREACHED = "check that a broker runs there; betimes broker --anonymous starts one on port 1883"

HOST_IS_H = {"help_option_names": ["--help"]}  # -h is the host, as it is for Mosquitto's commands

app = typer.Typer(
    name="betimes",
    help=ABOUT,
    epilog=START,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a bug's traceback is for developers: as plain as Python prints it
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo_command)
app.command("simulate", epilog=simulate.EXAMPLES)(simulate.simulate_command)
app.command("predict", epilog=predict.EXAMPLES)(predict.predict_command)
app.command("admit", epilog=admit.EXAMPLES)(admit.admit_command)
app.command("figures", epilog=figure.LIST_EXAMPLES)(figure.figures_command)
app.command("figure", epilog=figure.EXAMPLES)(figure.figure_command)
app.command("telemetry", epilog=telemetry.EXAMPLES)(telemetry.telemetry_command)
app.add_typer(pipeline.pipeline_app)
app.command("report", epilog=report.EXAMPLES)(report.report_command)
app.command("twin", epilog=twin.EXAMPLES)(twin.twin_command)
app.command("match", epilog=match.EXAMPLES)(match.match_command)
app.command("replay", epilog=replay.EXAMPLES)(replay.replay_command)
app.command("check", epilog=check.EXAMPLES)(check.check_command)
app.command("filter", epilog=filter.EXAMPLES)(filter.filter_command)
app.command("broker", epilog=broker.EXAMPLES)(broker.broker_command)
app.command("control", epilog=control.EXAMPLES)(control.control_command)
app.command("dashboard", epilog=dashboard.EXAMPLES)(dashboard.dashboard_command)
app.command("network", epilog=network.EXAMPLES)(network.network_command)
app.command("peer", epilog=peer.EXAMPLES)(peer.peer_command)
app.command("pub", epilog=pub.EXAMPLES, context_settings=HOST_IS_H)(pub.pub_command)
app.command("sub", epilog=sub.EXAMPLES, context_settings=HOST_IS_H)(sub.sub_command)
app.command("passwd", epilog=passwd.EXAMPLES)(passwd.passwd_command)
app.command("reference", epilog=reference.EXAMPLES)(reference.reference_command)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor_command)


def _show_version(asked: bool) -> None:
    if asked:
        results().print(f"betimes {__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Accept the options that precede a command."""


options.__doc__ = None  # so that --help prints the app's own text


def command_names() -> tuple[str, ...]:
    """Return the names of all commands and command groups."""
    groups = (group.typer_instance.info.name for group in app.registered_groups if group.typer_instance)
    return tuple(
        name
        for name in (*(command.name for command in app.registered_commands), *groups)
        if isinstance(name, str)
    )


@cache
def commands() -> Callable[..., Any]:
    """Return the click command; cached, because typer rebuilds all commands on each call."""
    return get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Raises nothing."""
    if sys.stdout is None:  # the caller closed it: there is no reader
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 -- open until the process ends
    try:
        return _ran(arguments)
    except UnreachableError as error:
        print_error(f"{error}\nhint: {UNREACHED}")
        return UNAVAILABLE
    except BetimesError as error:
        print_error(str(error))
        return MISTAKE
    except BrokenPipeError:
        return _reader_gone()
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EIO):
            return _bug()
        _let_go()
        print_error(f"cannot write the output ({error.strerror})\nhint: free space, or redirect the output")
        return MISTAKE
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # noqa: BLE001 -- the last place that can tell a bug from wrong input
        if _follows_interrupt(error):
            return _interrupted()
        if os.strerror(errno.ENOSPC) not in str(error):  # Java's message has it among other lines
            return _bug()
        problem = f"cannot write a file ({os.strerror(errno.ENOSPC)})"
        print_error(f"{problem}\nhint: free space on the disk of the results and on Spark's: /tmp")
        return MISTAKE


def _ran(arguments: Sequence[str] | None) -> int:
    """Run a command line, and return its code after its output is flushed."""
    try:
        commands()(args=None if arguments is None else list(arguments), prog_name="betimes")
        code = 0
    except SystemExit as leaving:
        code = _code(leaving)
    sys.stdout.flush()
    return code


def _follows_interrupt(error: BaseException) -> bool:
    """Return whether an error is only the consequence of an interrupt."""
    earlier = error.__context__
    return earlier is not None and (isinstance(earlier, KeyboardInterrupt) or _follows_interrupt(earlier))


def _bug() -> int:
    traceback.print_exc()
    print_error("this is a bug in Betimes, not in your input; the traceback above shows where")
    return BUG


def _code(leaving: SystemExit) -> int:
    code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if isinstance(leaving.__context__, BrokenPipeError):  # typer makes it 1, which means failed runs here
        return _reader_gone()
    if code == INTERRUPTED:
        return _interrupted()
    return code


def _interrupted() -> int:
    print_notice("interrupted")
    return INTERRUPTED


def _reader_gone() -> int:
    _let_go()
    return READER_GONE


def _let_go() -> None:
    """Flush standard output, or redirect it to null: Python would fail again when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
