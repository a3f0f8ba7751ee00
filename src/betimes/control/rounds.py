"""Rounds of the control centre: learn a model from telemetry, predict with it, send it to the brokers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from betimes.broker.admission.model_packets import MODEL_TOPIC, packed_model
from betimes.client.addresses import Address
from betimes.client.connection import connected
from betimes.client.errors import PublicationRefusedError, UnreachableError
from betimes.model.errors import BetimesError
from betimes.model.statistics import NetworkStatistics
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.tables.predictions import write_predictions
from betimes.pipeline.telemetry.job import PipelineSettings, run_pipeline
from betimes.pipeline.telemetry.model import learn_statistics
from betimes.prediction.predict import Prediction, predict
from betimes.telemetry.files import labels_in
from betimes.terminal.progress import progress_bar
from betimes.terminal.terminal import print_json, print_notice

NOT_AUTHORIZED = 0x87
NAMES_SHOWN = 8
SECRET_HINT = "the broker's control secret is missing, or differs from --control-secret"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The result of one round of the control centre."""

    brokers: int
    links: int
    publishers: int
    subscriptions: int
    promised: int  # subscriptions that ask for an on-time share
    predicted_share_mean: float | None  # of all subscriptions; None: there are none
    told: int  # brokers that accepted the model
    took_s: float
    problems: tuple[str, ...] = ()  # of each named broker that did not get the model
    unreachable: int = 0  # of those, the brokers that did not answer
    lag_s: float | None = None  # of a stream: from the write of the oldest new file to the model at brokers
    set_aside: int = 0  # rows of a stream that are bad or came too late, since its start
    writers: tuple[str, ...] = ()  # brokers that wrote or sent telemetry; empty: the files do not name them
    alarms: int = 0  # of a stream: subscribers whose share differs from the prediction


@dataclass(frozen=True, slots=True, kw_only=True)
class Centre:
    """The settings of a control centre: its telemetry, its tables, and its brokers."""

    telemetry: Path
    tables: Path
    brokers: Sequence[Address]
    secret: str = field(repr=False)
    ca: Path | None = None
    is_told: bool = False  # brokers send their telemetry over MQTT, and the centre writes the files


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
    """Run rounds: learn from the recent telemetry, and send the model to the brokers."""
    while True:
        due_s = time.monotonic() + every_s
        try:
            told = one_round(spark, centre, settings)
        except BetimesError as error:
            if once:
                raise
            print_notice(f"this round failed: {error}")
        else:
            print_round(told, as_json=as_json)
            if once:
                check_told(told)
        if once or ending.wait(max(due_s - time.monotonic(), 0.0)):
            return


def check_told(done: Round) -> None:
    """Raise an error if a broker did not get the model; an UnreachableError if none of these answered."""
    if done.problems:
        kind = UnreachableError if done.unreachable == len(done.problems) else BetimesError
        raise kind(f"{len(done.problems)} of {done.told + len(done.problems)} brokers did not get the model")


def one_round(spark: SparkSession, centre: Centre, settings: PipelineSettings) -> Round:
    """Learn from telemetry, predict, and send the model to the brokers."""
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
    """Predict from the statistics, and send them to the brokers; return the round that began at `began_s`."""
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
    """Send the model to every broker; return errors by broker."""
    model = (MODEL_TOPIC, *packed_model(statistics, secret))
    return await publish_everywhere(lambda: [model], brokers, ca)


async def publish_everywhere(
    messages: Callable[[], Iterable[tuple[str, bytes, str]]], brokers: Sequence[Address], ca: Path | None
) -> dict[Address, BetimesError]:
    """Publish signed messages (topic, payload, signature) at every broker; return errors by broker.

    `messages` is called for each broker, because alarms are numbered by the time at which they are sent.
    """

    async def publish(address: Address) -> BetimesError | None:
        try:
            async with connected(address, ca=ca) as client:
                for topic, payload, signature in messages():
                    await client.publish_signed(topic, payload, signature)
        except BetimesError as error:
            return error
        return None

    answers = await asyncio.gather(*(publish(address) for address in brokers))
    return {address: error for address, error in zip(brokers, answers, strict=True) if error is not None}


def _with_hint(error: BetimesError) -> str:
    is_unsigned = isinstance(error, PublicationRefusedError) and error.code == NOT_AUTHORIZED
    return f"{error}\nhint: {SECRET_HINT}" if is_unsigned else str(error)


def print_round(done: Round, *, as_json: bool) -> None:
    """Print the result of a round, and its problems."""
    for problem in done.problems:
        print_notice(f"no model sent: {problem}")
    named = done.told + len(done.problems)
    if done.brokers > named:
        addresses = "1 address" if named == 1 else f"{named} addresses"
        print_notice(
            f"the telemetry has {done.brokers} brokers, the command line {addresses}: "
            "the other brokers get no model\n"
            "hint: name all brokers of the network"
        )
    if 0 < len(done.writers) < named:
        print_notice(
            f"the command line names {named} addresses, but only {_listed(done.writers)} wrote telemetry: "
            "the model lacks data on the other brokers\n"
            "hint: start every broker with --telemetry"
        )
    if as_json:
        print_json(asdict(done))
        return
    stream = ""
    if done.lag_s is not None:
        stream = f"; {done.lag_s:.1f} s after the write; {done.set_aside} rows in quarantine; "
        stream += f"{done.alarms} alarms"
    share = "-" if done.predicted_share_mean is None else f"{done.predicted_share_mean:.3f}"
    print_notice(
        f"learned {done.brokers} brokers, {done.links} links, {done.publishers} publishers and "
        f"{done.subscriptions} subscriptions ({done.promised} ask for an on-time share), "
        f"in {done.took_s:.0f} s; mean predicted on-time share {share}; "
        f"{done.told} brokers got the model{stream}"
    )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - NAMES_SHOWN
    return ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
