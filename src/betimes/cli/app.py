"""What can a person type? The commands, and how a run of one ends.

Exit codes: 0 done, also for what runs until it is told to end (broker, network, peer, control); 1 it ran, but
some of its runs failed; 2 the user's mistake, told in one message, also an address of Spark where nobody
answers; 69 a broker that cannot be reached; 70 a bug of ours, with its traceback; 130 interrupted; 141 the
reader of our output went away.
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

Subscribers say what they want (a filter), how late it may be (a delay bound) and what it is worth \
(a price). Betimes routes, schedules and drops so that as much value as possible arrives in time.
"""

START = """\
[bold]To begin[/bold]

betimes demo: what is it all for? Real flights over live brokers, in about two minutes.

betimes simulate examples/city.toml: what would happen in this network?

betimes predict examples/city.toml: what share will reach each subscriber in time?

betimes broker --anonymous: a broker for any MQTT client.

betimes network examples/city.toml --anonymous: a network of brokers on this machine.

betimes peer --attribute speed:0..250 --anonymous: a peer of an overlay without brokers.

betimes sub -t 'traffic/#' --filter "speed > 50": what does it bring?

betimes pub -t traffic/a4 -m fast --attribute speed=61: say something there.

betimes figures: which figures of the papers can be run?

betimes filter "speed > 50 AND kind = 'car'" --event speed=61,kind=car: what does a filter mean?

Every command has its own --help with examples.
"""

UNREACHED = "is a broker running there? betimes broker --anonymous starts one at port 1883"

HOST_IS_H = {"help_option_names": ["--help"]}  # -h is the host, as it is for Mosquitto's commands

app = typer.Typer(
    name="betimes",
    help=ABOUT,
    epilog=START,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,  # a bug's traceback is for us: as plain as Python has it
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
    """Take the options that stand before a command."""


options.__doc__ = None  # the help is the app's


def command_names() -> tuple[str, ...]:
    """Return the names of all commands, and of groups of them."""
    groups = (group.typer_instance.info.name for group in app.registered_groups if group.typer_instance)
    return tuple(
        name
        for name in (*(command.name for command in app.registered_commands), *groups)
        if isinstance(name, str)
    )


@cache
def commands() -> Callable[..., Any]:
    """Return what runs a command line: typer would put all commands together anew for each."""
    return get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code. Nothing is raised, whatever happened."""
    if sys.stdout is None:  # closed by the caller: nobody reads
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115 -- for as long as we run
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
        print_error(f"the output cannot be written ({error.strerror})\nhint: make room, or send it elsewhere")
        return MISTAKE
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # noqa: BLE001 -- the last place where a bug can be told from a mistake
        if _follows_interrupt(error):
            return _interrupted()
        if os.strerror(errno.ENOSPC) not in str(error):  # Java says it among much else
            return _bug()
        problem = f"something cannot be written ({os.strerror(errno.ENOSPC)})"
        print_error(f"{problem}\nhint: make room where results go, and where Spark works: /tmp")
        return MISTAKE


def _ran(arguments: Sequence[str] | None) -> int:
    """Run a command line, and return its code when all that it said is written."""
    try:
        commands()(args=None if arguments is None else list(arguments), prog_name="betimes")
        code = 0
    except SystemExit as leaving:
        code = _code(leaving)
    sys.stdout.flush()
    return code


def _follows_interrupt(error: BaseException) -> bool:
    """Tell whether something failed only because somebody had interrupted it."""
    earlier = error.__context__
    return earlier is not None and (isinstance(earlier, KeyboardInterrupt) or _follows_interrupt(earlier))


def _bug() -> int:
    traceback.print_exc()
    print_error("this is a bug in Betimes, not a mistake of yours; the lines above say where")
    return BUG


def _code(leaving: SystemExit) -> int:
    code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    if isinstance(leaving.__context__, BrokenPipeError):  # typer makes it 1, which means something else here
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
    """Write what is still unwritten, or let it go nowhere: Python would fail at it once more on leaving."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
