"""The control centre as a stream (`betimes control --stream`): it learns from each new telemetry file."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from betimes.broker.admission.model_packets import alarm_topic, signed_alarm
from betimes.client.addresses import Address
from betimes.client.connection import connected
from betimes.client.errors import UnreachableError
from betimes.control import rounds
from betimes.language.quantities import read_duration_s
from betimes.model.errors import BetimesError, SettingError, TextError
from betimes.model.statistics import NetworkStatistics
from betimes.pipeline.live.alarms import Alarm, Watch, measured_shares, predicted_shares, write_alarms
from betimes.pipeline.live.rows import LiveRows, LiveSettings
from betimes.pipeline.live.stream import NewFile, follow
from betimes.pipeline.live.tables import live_model, live_tables
from betimes.pipeline.spark.lazy import SparkSession
from betimes.pipeline.tables.files import current_tables
from betimes.pipeline.tables.predictions import write_predictions
from betimes.prediction.predict import Prediction
from betimes.telemetry.files import labels_in
from betimes.telemetry.messages import TELEMETRY_TOPIC, TelemetryMessageError
from betimes.telemetry.spool import Spool
from betimes.terminal.terminal import print_notice

WRITE_EVERY_S = 1.0
AGAIN_AFTER_S = 2.0
MESSAGES_WAITING_MAX = 1_000  # of one broker
END_S_MAX = 10.0
STREAM = "stream"  # the folder below the tables with the state between batches
KEPT_S_MAX = 7 * 24 * 3600.0
MEASURE_EVERY_S = 30.0
LATE, ALARM_GAP = "2m", 0.1  # the defaults


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """The settings of a stream: what it keeps, and the difference that raises an alarm."""

    live: LiveSettings
    alarm_gap: float


def read_stream_settings(since: str, late: str | None, alarm: float | None) -> StreamSettings:
    """Return the settings that the options of a stream give."""
    alarm_gap = ALARM_GAP if alarm is None else alarm
    if not 0.0 <= alarm_gap <= 1.0:
        raise SettingError("--alarm", alarm, "must be between 0 and 1", "for example 0.1")
    kept_s = _duration_s("--since", since)
    if kept_s > KEPT_S_MAX:
        raise SettingError("--since", since, "a stream keeps at most a week", "for example 15m")
    return StreamSettings(
        live=LiveSettings(kept_s=kept_s, late_s=_duration_s("--late", late or LATE)), alarm_gap=alarm_gap
    )


def _duration_s(name: str, text: str) -> float:
    try:
        return read_duration_s(text)
    except TextError as error:
        raise SettingError(name, text, error.problem, "for example 15m") from None


def run_stream(
    spark: SparkSession,
    centre: rounds.Centre,
    settings: StreamSettings,
    *,
    every_s: float,
    ending: threading.Event,
    once: bool,
    as_json: bool,
) -> None:
    """Learn from each new telemetry file, and send the model to the brokers, until `ending` is set."""
    stream = ControlStream(spark, centre, settings)
    done: list[rounds.Round] = []
    before: list[NewFile] = []  # files from MQTT whose batch is over

    def act(batch: int, files: list[NewFile]) -> None:
        if centre.is_told:
            Spool.remove(each.path for each in before)
            before[:] = files
        try:
            done[:] = [stream.take(batch, files)]
        except BetimesError as error:
            if once:
                raise
            print_notice(f"this round failed: {error}")
        else:
            rounds.print_round(done[0], as_json=as_json)

    place = centre.tables / STREAM
    place.mkdir(parents=True, exist_ok=True)
    tap = TelemetryTap(centre.brokers, centre.telemetry, ca=centre.ca) if centre.is_told else nullcontext()
    with tap:
        follow(spark, centre.telemetry, place, act, every_s=every_s, ending=ending, once=once)
    if once and done:
        rounds.check_told(done[0])


class ControlStream:
    """A control centre that learns batch by batch."""

    def __init__(self, spark: SparkSession, centre: rounds.Centre, settings: StreamSettings) -> None:
        self._spark = spark
        self._centre = centre
        self._settings = settings
        self._rows = LiveRows(centre.tables / STREAM, settings.live)
        self._watch = Watch(settings.alarm_gap)
        self._began_at_s = time.time()
        self._measure_at_s = -math.inf  # from then on, the next round measures

    def take(self, batch: int, files: Sequence[NewFile]) -> rounds.Round:
        """Learn from new files, predict, and send the model; at intervals measure, and look for alarms.

        Measuring takes as long as learning, and new files wait meanwhile: so not every round measures.
        """
        began_s = time.monotonic()
        centre, live = self._centre, self._settings.live
        known = sorted(labels_in(centre.telemetry))
        folder, state = self._rows.take_in(self._spark, [each.path for each in files], batch, known)
        told: list[tuple[rounds.Round, NetworkStatistics, Prediction]] = []

        def tell(statistics: NetworkStatistics) -> None:
            done, prediction = rounds.predict_and_tell(centre, statistics, began_s)
            fresh = [each.written_at_s for each in files if each.written_at_s >= self._began_at_s]
            lag_s = time.time() - min(fresh) if fresh else done.took_s
            told.append((replace(done, lag_s=lag_s), statistics, prediction))

        if began_s < self._measure_at_s:
            tell(live_model(self._spark, folder, centre.tables / STREAM, live))
        else:
            self._measure_at_s = began_s + MEASURE_EVERY_S
            live_tables(self._spark, folder, centre.tables, live, state, tell)
            self._after_measuring(*told[0][1:])
        done = told[0][0]
        return replace(done, set_aside=sum(state.set_aside.values()), alarms=self._watch.open)

    def _after_measuring(self, statistics: NetworkStatistics, prediction: Prediction) -> None:
        """Keep the prediction, compare measured with predicted shares, and publish alarms."""
        centre = self._centre
        write_predictions(centre.tables, statistics, prediction, made_at_s=time.time())
        measured = measured_shares(current_tables(centre.tables))
        alarms = self._watch.look(measured, predicted_shares(statistics, prediction), time.time())
        write_alarms(centre.tables, alarms)
        for alarm in alarms:
            print_notice(alarm_text(alarm))
        failed = asyncio.run(tell_alarms(alarms, centre)) if alarms else {}
        for address, error in failed.items():
            print_notice(f"no alarm sent: {address}: {error}")


def alarm_text(alarm: Alarm) -> str:
    """Return an alarm as readable text."""
    verb = "gets" if alarm.state == "begins" else "gets what is predicted again:"
    low, high = alarm.predicted_low, alarm.predicted_high
    predicted = f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"
    return (
        f"alarm {alarm.state}: {alarm.subscriber} at {alarm.home} {verb} {alarm.measured:.3f} on time "
        f"({alarm.measured_low:.3f} to {alarm.measured_high:.3f}), predicted {predicted}"
    )


async def tell_alarms(alarms: Sequence[Alarm], centre: rounds.Centre) -> dict[Address, BetimesError]:
    """Publish the alarms at every broker; return errors by broker."""

    def signed() -> Iterator[tuple[str, bytes, str]]:
        for alarm in alarms:
            topic = alarm_topic(alarm.home, alarm.subscriber)
            yield topic, *signed_alarm(topic, asdict(alarm), time.time_ns(), centre.secret)

    return await rounds.publish_everywhere(signed, centre.brokers, centre.ca)


class TelemetryTap:
    """Subscribes to the telemetry of brokers while it is open, and writes it to a directory.

    For a centre that shares no directory with the brokers: the stream reads these files like a broker's own.
    A thread reconnects to a broker that is away; the broker then sends its subscriptions again.
    """

    def __init__(self, brokers: Sequence[Address], directory: Path, *, ca: Path | None = None) -> None:
        self._brokers = [replace(each, client_id=None) for each in brokers]  # the centre may use that id
        self._ca = ca
        self._spool = Spool(directory)
        self._left_out = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="betimes-telemetry-tap", daemon=True)

    def __enter__(self) -> TelemetryTap:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(END_S_MAX)

    def _run(self) -> None:
        asyncio.run(self._listen())

    async def _listen(self) -> None:
        tasks = [asyncio.create_task(self._follow(each)) for each in self._brokers]
        try:
            while not self._ended.is_set():
                await asyncio.sleep(WRITE_EVERY_S)
                self._spool.write()
                if self._spool.left_out > self._left_out:
                    print_notice(f"telemetry dropped: {self._spool.left_out - self._left_out:,} rows")
                    self._left_out = self._spool.left_out
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._spool.write()

    async def _follow(self, address: Address) -> None:
        """Receive the telemetry of one broker, and reconnect without end."""
        said = ""
        while True:
            try:
                await self._take_all(address)
                problem = "the broker closed the connection"
            except UnreachableError as error:
                problem = str(error)
            except BetimesError as error:
                problem = f"{error}\nhint: the broker's access list must allow reading {TELEMETRY_TOPIC}/#"
            if problem != said:
                print_notice(f"no telemetry from {address} for now: {problem}")
                said = problem
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _take_all(self, address: Address) -> None:
        async with (
            connected(address, ca=self._ca) as client,
            client.subscribe(f"{TELEMETRY_TOPIC}/#", buffer=MESSAGES_WAITING_MAX) as told,
        ):
            async for message in told:
                with suppress(TelemetryMessageError):  # a kind that this version does not know
                    self._spool.take(message.topic, message.payload, time.time())
