"""`betimes control`: learn from telemetry what the network does, and send the model to its brokers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from betimes.client.addresses import read_address
from betimes.language.quantities import read_duration_s
from betimes.model.errors import SettingError, TextError
from betimes.terminal.server_settings import read_secret
from betimes.terminal.signals import told_to_end
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption

EVERY_S_MIN = 1.0  # a round takes longer than that anyway


EXAMPLES = """\
[bold]Examples[/bold]

betimes network examples/city.toml --anonymous --telemetry out/live --control-secret out/secret

betimes control mqtt://127.0.0.1:1883 mqtt://127.0.0.1:1884 --telemetry out/live --tables out/tables \
--control-secret out/secret

betimes sub -t 'traffic/#' --max-delay 1s --reliability 0.95

betimes control mqtt://127.0.0.1:1883 --telemetry out/live --tables out/tables --control-secret out/secret \
--stream

betimes control mqtt://10.0.0.1 mqtt://10.0.0.2 --tables out/tables --control-secret out/secret --stream

betimes sub -t '$betimes/alarm/#'

betimes control mqtt://127.0.0.1 --telemetry out/live --tables out/tables --control-secret out/secret --once
"""


BrokersArgument = Annotated[
    list[str], typer.Argument(help="The brokers to tell: mqtt(s)://user:password@host:port.")
]


TelemetryOption = Annotated[
    Path | None,
    typer.Option(
        "--telemetry",
        help="What the brokers write. With --stream it may be left out: brokers then tell it over MQTT.",
        metavar="DIR",
    ),
]


TablesOption = Annotated[
    Path, typer.Option("--tables", help="Where the pipeline's tables go.", metavar="DIR")
]


SecretOption = Annotated[
    Path, typer.Option("--control-secret", help="The file with the secret that the brokers have too.")
]


EveryOption = Annotated[
    str | None,
    typer.Option("--every", help="From one round to the next, at least 1s: 60s, with --stream 5s."),
]


SinceOption = Annotated[str, typer.Option("--since", help="How much of the telemetry counts: the last 15m.")]


OnceOption = Annotated[bool, typer.Option("--once", help="One round, and no more.")]


StreamOption = Annotated[
    bool, typer.Option("--stream", help="Learn from each new file as it comes, and tell of alarms.")
]


LateOption = Annotated[
    str | None,
    typer.Option("--late", help="With --stream: how late a row may come, on its broker's clock: 2m."),
]


AlarmOption = Annotated[
    float | None,
    typer.Option("--alarm", help="With --stream: by how much shares may differ from predictions: 0.1."),
]


CertificatesOption = Annotated[
    Path | None, typer.Option("--cafile", help="Trust the certificates in this file.")
]


def control_command(
    brokers: BrokersArgument,
    tables: TablesOption,
    control_secret: SecretOption,
    telemetry: TelemetryOption = None,
    every: EveryOption = None,
    since: SinceOption = "15m",
    once: OnceOption = False,
    stream: StreamOption = False,
    late: LateOption = None,
    alarm: AlarmOption = None,
    cafile: CertificatesOption = None,
    master: MasterOption = None,
    remote: RemoteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Learn again and again from telemetry what the network does, and tell its brokers.

    Each round runs `betimes pipeline` on Spark, predicts everybody's on-time share, and sends the model,
    signed, to every broker. By it brokers admit or refuse those who subscribe with `reliability`. A broker
    that is away is told in the next round; a round that fails leaves the brokers with the last model.

    With --stream, only new files are read in each round, what was measured is held against what is predicted,
    and brokers tell those who subscribe to $betimes/alarm/# where the two part ways. Without --telemetry, it
    listens to $betimes/telemetry/# at each broker: they need not share a directory.
    """
    from betimes.control.rounds import Centre, run_rounds
    from betimes.control.stream import STREAM, read_stream_settings, run_stream
    from betimes.pipeline.tables.files import check_tables_place
    from betimes.pipeline.telemetry.job import PipelineSettings, check_places
    from betimes.pipeline.telemetry.survey import read_since

    if stream:
        check_driver_is_here(master, remote)
    else:
        check_no_stream_options({"--late": late, "--alarm": alarm})
    check_telemetry_is_named(telemetry, once=once, stream=stream)
    secret = read_secret(control_secret, "--control-secret")
    every_s = read_every_s(every or ("5s" if stream else "60s"))
    centre = Centre(
        telemetry=telemetry or tables / STREAM / "told",
        is_told=telemetry is None,
        tables=tables,
        brokers=list(dict.fromkeys(map(read_address, brokers))),
        secret=secret,
        ca=cafile,
    )
    settings, live = PipelineSettings(since=read_since(since)), None
    if stream:
        live = read_stream_settings(since, late, alarm)
    if telemetry is None:
        check_tables_place(tables)
    elif once or stream:  # else what is not there yet may be there in the next round
        check_places(telemetry, tables)
    spark = open_spark("betimes control", master, remote)
    with told_to_end() as ending:
        if live is not None:
            run_stream(spark, centre, live, every_s=every_s, ending=ending, once=once, as_json=as_json)
            return
        run_rounds(spark, centre, settings, every_s=every_s, ending=ending, once=once, as_json=as_json)


def check_driver_is_here(master: str | None, remote: str | None) -> None:
    """Raise an error where a stream would be driven by a Spark Connect server."""
    server = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if server:
        problem = "cannot be combined with --stream: its batches would be acted on at that server, not here"
        raise SettingError("--remote", server, problem, "say --master, or leave out --stream")


def check_telemetry_is_named(telemetry: Path | None, *, once: bool, stream: bool) -> None:
    """Raise an error where there would be nothing to learn from."""
    if telemetry is None and (once or not stream):
        hint = "name what the brokers write; only with --stream, and without --once, they tell it over MQTT"
        raise SettingError("--telemetry", "", "is missing", hint)


def check_no_stream_options(given: Mapping[str, object]) -> None:
    """Raise an error where an option would be ignored."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(name, value, "says something only with --stream", "add --stream")


def read_every_s(text: str) -> float:
    """Return what `--every` says."""
    try:
        every_s = read_duration_s(text)
    except TextError as error:
        raise SettingError("--every", text, error.problem, "for example 60s") from None
    if every_s < EVERY_S_MIN:
        raise SettingError("--every", text, f"must be at least {EVERY_S_MIN:g}s", "for example 60s")
    return every_s
