"""`betimes control`: learn a model of the network from telemetry, and send it to the brokers."""

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
from betimes.terminal.serving import told_to_end
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, examples

EVERY_S_MIN = 1.0  # a round takes longer anyway

EXAMPLES = examples(
    "betimes network examples/city.toml --anonymous --telemetry out/live --control-secret out/secret",
    "betimes control mqtt://127.0.0.1:1883 mqtt://127.0.0.1:1884 --telemetry out/live --tables out/tables "
    "--control-secret out/secret",
    "betimes sub -t 'traffic/#' --max-delay 1s --reliability 0.95",
    "betimes control mqtt://127.0.0.1:1883 --telemetry out/live --tables out/tables "
    "--control-secret out/secret --stream",
    "betimes control mqtt://10.0.0.1 mqtt://10.0.0.2 --tables out/tables "
    "--control-secret out/secret --stream",
    "betimes sub -t '$betimes/alarm/#'",
    "betimes control mqtt://127.0.0.1 --telemetry out/live --tables out/tables "
    "--control-secret out/secret --once",
)

BrokersArgument = Annotated[
    list[str], typer.Argument(help="The brokers to send the model to: mqtt(s)://user:password@host:port.")
]
TelemetryOption = Annotated[
    Path | None,
    typer.Option(
        "--telemetry",
        help="The directory that the brokers write. Optional with --stream: brokers then send it over MQTT.",
        metavar="DIR",
    ),
]
TablesOption = Annotated[
    Path, typer.Option("--tables", help="The directory for the pipeline's tables.", metavar="DIR")
]
SecretOption = Annotated[
    Path, typer.Option("--control-secret", help="The file with the secret that brokers verify models with.")
]
EveryOption = Annotated[
    str | None,
    typer.Option("--every", help="Time between rounds, at least 1s. Default: 60s, with --stream 5s."),
]
SinceOption = Annotated[str, typer.Option("--since", help="Use the telemetry of this last period.")]
OnceOption = Annotated[bool, typer.Option("--once", help="Run one round and end.")]
StreamOption = Annotated[
    bool, typer.Option("--stream", help="Learn from each new file as it arrives, and raise alarms.")
]
LateOption = Annotated[
    str | None,
    typer.Option("--late", help="With --stream: how late a row may arrive, by its broker's clock: 2m."),
]
AlarmOption = Annotated[
    float | None,
    typer.Option("--alarm", help="With --stream: the difference from predictions that raises an alarm: 0.1."),
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
    """Run the control centre: learn a model from telemetry, and send it to the brokers, round by round.

    Brokers need a model to admit or refuse subscriptions with `reliability`. Each round runs
    `betimes pipeline` on Spark, predicts the on-time share of every subscriber, and sends the model, signed,
    to every broker. A broker that is away gets it in the next round; after a failed round the brokers keep
    the last model.

    With --stream, each round reads only new files and compares measured shares with predictions; brokers
    publish the differences as alarms to $betimes/alarm/#. Without --telemetry, the centre subscribes to
    $betimes/telemetry/# at each broker, so that no shared directory is needed.
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
    settings = PipelineSettings(since=read_since(since))
    live = read_stream_settings(since, late, alarm) if stream else None
    if telemetry is None:
        check_tables_place(tables)
    elif once or stream:  # else a missing directory may exist in the next round
        check_places(telemetry, tables)
    spark = open_spark("betimes control", master, remote)
    with told_to_end() as ending:
        if live is not None:
            run_stream(spark, centre, live, every_s=every_s, ending=ending, once=once, as_json=as_json)
            return
        run_rounds(spark, centre, settings, every_s=every_s, ending=ending, once=once, as_json=as_json)


def check_driver_is_here(master: str | None, remote: str | None) -> None:
    """Raise an error if a Spark Connect server would drive the stream."""
    server = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if server:
        problem = "cannot be combined with --stream: that server, not this command, would handle the batches"
        raise SettingError("--remote", server, problem, "pass --master, or leave out --stream")


def check_telemetry_is_named(telemetry: Path | None, *, once: bool, stream: bool) -> None:
    """Raise an error if there is no source of telemetry."""
    if telemetry is None and (once or not stream):
        hint = "name the directory that brokers write; MQTT replaces it only with --stream and without --once"
        raise SettingError("--telemetry", "", "is missing", hint)


def check_no_stream_options(given: Mapping[str, object]) -> None:
    """Raise an error if an option would be ignored."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(name, value, "needs --stream", "add --stream")


def read_every_s(text: str) -> float:
    """Return the value of `--every` in seconds."""
    try:
        every_s = read_duration_s(text)
    except TextError as error:
        raise SettingError("--every", text, error.problem, "for example 60s") from None
    if every_s < EVERY_S_MIN:
        raise SettingError("--every", text, f"must be at least {EVERY_S_MIN:g}s", "for example 60s")
    return every_s
