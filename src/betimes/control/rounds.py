"""How do brokers come to know what they can promise? `betimes control` learns it and tells them."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from betimes.client.addresses import Address, read_address
from betimes.client.errors import PublicationRefusedError, UnreachableError
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError, SettingError, TextError
from betimes.model.statistics import NetworkStatistics
from betimes.terminal.progress import progress_bar
from betimes.terminal.server_settings import read_secret
from betimes.terminal.signals import told_to_end
from betimes.terminal.spark_options import MasterOption, RemoteOption, open_spark
from betimes.terminal.terminal import JsonOption, print_json, print_notice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from betimes.pipeline.telemetry.job import PipelineSettings
    from betimes.prediction.predict import Prediction

EVERY_S_MIN = 1.0  # a round takes longer than that anyway
NOT_AUTHORIZED = 0x87
NAMES_SHOWN = 8
SECRET_HINT = "the broker has another secret than the one in --control-secret, or none at all"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round of the control centre came to."""

    brokers: int
    links: int
    publishers: int
    subscriptions: int
    promised: int  # subscriptions that ask for an on-time share
    predicted_share_mean: float | None  # of all subscriptions; None: there are none
    told: int  # brokers that took the model
    took_s: float
    problems: tuple[str, ...] = ()  # of each broker that was named and not told
    unreachable: int = 0  # of those, the brokers that did not answer
    lag_s: float | None = None  # of a stream: from when the oldest new file was written until brokers knew
    set_aside: int = 0  # rows of a stream that make no sense or came too late, since it began
    writers: tuple[str, ...] = ()  # brokers that wrote telemetry, or told it; none: it does not say who did
    alarms: int = 0  # of a stream: subscribers who do not get what is predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """Where a control centre learns, where it writes, and whom it tells."""

    telemetry: Path
    tables: Path
    brokers: Sequence[Address]
    secret: str = field(repr=False)
    ca: Path | None = None
    is_told: bool = False  # brokers tell their telemetry, and it is written down here


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
    from betimes.control.stream import STREAM, read_stream_settings, run_stream
    from betimes.pipeline.tables.files import check_tables_place
    from betimes.pipeline.telemetry.job import PipelineSettings, check_places
    from betimes.pipeline.telemetry.survey import read_since

    if stream:
        check_driver_is_here(master, remote)
    else:
        check_no_stream_options({"--late": late, "--alarm": alarm})
    if telemetry is None and (once or not stream):
        hint = "name what the brokers write; only with --stream, and without --once, they tell it over MQTT"
        raise SettingError("--telemetry", "", "is missing", hint)
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
    elif once or stream:  # else what is not there yet may be there in the next round
        check_places(telemetry, tables)
    spark = open_spark("betimes control", master, remote)
    with told_to_end() as ending:
        if live is not None:
            run_stream(spark, centre, live, every_s=every_s, ending=ending, once=once, as_json=as_json)
        else:
            run_rounds(spark, centre, settings, every_s=every_s, ending=ending, once=once, as_json=as_json)


def check_driver_is_here(master: str | None, remote: str | None) -> None:
    """Raise an error where a stream would be driven by a Spark Connect server."""
    server = remote or (None if master else os.environ.get("SPARK_REMOTE"))
    if server:
        problem = "cannot be combined with --stream: its batches would be acted on at that server, not here"
        raise SettingError("--remote", server, problem, "say --master, or leave out --stream")


def check_no_stream_options(given: Mapping[str, object]) -> None:
    """Raise an error where an option would be ignored."""
    for name, value in given.items():
        if value is not None:
            raise SettingError(name, value, "says something only with --stream", "add --stream")


def run_rounds(
    spark: SparkSession,
    centre: Centre,
    settings: PipelineSettings,
    *,
    every_s: float,
    ending: threading.Event,
    once: bool,
    as_json: bool,
) -> None:
    """Learn from all telemetry that counts, and tell the brokers, again and again."""
    while True:
        due_s = time.monotonic() + every_s
        try:
            told = one_round(spark, centre, settings)
        except BetimesError as error:
            if once:
                raise
            print_notice(f"this round came to nothing: {error}")
        else:
            print_round(told, as_json=as_json)
            if once:
                check_told(told)
        if once or _wait(ending, due_s):
            return


def read_every_s(text: str) -> float:
    """Return what `--every` says."""
    try:
        every_s = read_duration_s(text)
    except TextError as error:
        raise SettingError("--every", text, error.problem, "for example 60s") from None
    if every_s < EVERY_S_MIN:
        raise SettingError("--every", text, f"must be at least {EVERY_S_MIN:g}s", "for example 60s")
    return every_s


def check_told(done: Round) -> None:
    """Raise an error if some broker was not told; an UnreachableError if that is all that went wrong."""
    if done.problems:
        kind = UnreachableError if done.unreachable == len(done.problems) else BetimesError
        raise kind(f"{len(done.problems)} of {done.told + len(done.problems)} brokers were not told")


def one_round(spark: SparkSession, centre: Centre, settings: PipelineSettings) -> Round:
    """Learn from telemetry, predict, and tell the brokers."""
    from betimes.pipeline.tables.predictions import write_predictions
    from betimes.pipeline.telemetry.job import run_pipeline
    from betimes.pipeline.telemetry.model import learn_statistics

    began_s = time.monotonic()
    with progress_bar("learning from telemetry") as advance:
        run_pipeline(spark, centre.telemetry, centre.tables, settings, advance)

    statistics = learn_statistics(centre.tables)
    done, prediction = predict_and_tell(centre, statistics, began_s)
    write_predictions(centre.tables, statistics, prediction, made_at_s=time.time())
    return done


def predict_and_tell(
    centre: Centre, statistics: NetworkStatistics, began_s: float
) -> tuple[Round, Prediction]:
    """Predict from what was learned, and tell the brokers; a round that began then is over."""
    from betimes.prediction.predict import predict
    from betimes.telemetry.files import labels_in

    prediction = predict(statistics, early_drop=True)
    shares = [each.share for each in prediction.subscribers]
    brokers = centre.brokers
    problems = asyncio.run(tell_brokers(statistics, brokers, centre.secret, centre.ca))
    done = Round(
        brokers=len(statistics.brokers),
        links=len(statistics.links),
        publishers=len(statistics.publishers),
        subscriptions=len(statistics.subscriptions),
        promised=sum(each.qos.reliability is not None for each in statistics.subscriptions),
        predicted_share_mean=sum(shares) / len(shares) if shares else None,
        told=len(brokers) - len(problems),
        took_s=time.monotonic() - began_s,
        problems=tuple(f"{address}: {_with_hint(error)}" for address, error in problems.items()),
        unreachable=sum(isinstance(error, UnreachableError) for error in problems.values()),
        writers=tuple(sorted(labels_in(centre.telemetry))),
    )
    return done, prediction


async def tell_brokers(
    statistics: NetworkStatistics, brokers: Sequence[Address], secret: str, ca: Path | None
) -> dict[Address, BetimesError]:
    """Send the model to every broker; return what went wrong, by broker."""
    from betimes.broker.admission.admission import MODEL_TOPIC, packed_model
    from betimes.client.connection import connected

    payload, signature = packed_model(statistics, secret)

    async def tell(address: Address) -> BetimesError | None:
        try:
            async with connected(address, ca=ca) as client:
                await client.publish_signed(MODEL_TOPIC, payload, signature)
        except BetimesError as error:
            return error
        return None

    answers = await asyncio.gather(*(tell(address) for address in brokers))
    return {address: error for address, error in zip(brokers, answers, strict=True) if error is not None}


def _with_hint(error: BetimesError) -> str:
    is_unsigned = isinstance(error, PublicationRefusedError) and error.code == NOT_AUTHORIZED
    return f"{error}\nhint: {SECRET_HINT}" if is_unsigned else str(error)


def print_round(done: Round, *, as_json: bool) -> None:
    """Print what a round came to, and what of it needs a look."""
    for problem in done.problems:
        print_notice(f"not told: {problem}")
    named = done.told + len(done.problems)
    if done.brokers > named:
        addresses = "1 address was" if named == 1 else f"{named} addresses were"
        print_notice(
            f"learned of {done.brokers} brokers, {addresses} named: the others promise nothing\n"
            "hint: name all brokers of the network"
        )
    if 0 < len(done.writers) < named:
        print_notice(
            f"{named} addresses were named, and telemetry came only from {_listed(done.writers)}: "
            "of the others too little is known\n"
            "hint: start every broker with --telemetry"
        )
    if as_json:
        print_json(asdict(done))
        return
    stream = ""
    if done.lag_s is not None:
        stream = f"; {done.lag_s:.1f} s after it was written; {done.set_aside} rows set aside; "
        stream += f"{done.alarms} alarms"
    share = "-" if done.predicted_share_mean is None else f"{done.predicted_share_mean:.3f}"
    print_notice(
        f"learned of {done.brokers} brokers, {done.links} links, {done.publishers} publishers and "
        f"{done.subscriptions} subscriptions ({done.promised} with a promise), in {done.took_s:.0f} s; "
        f"predicted on-time share {share} on average; {done.told} brokers were told{stream}"
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _wait(ending: threading.Event, due_s: float) -> bool:
    """Wait until the next round is due; say whether we were told to end."""
    return ending.wait(max(due_s - time.monotonic(), 0.0))
