"""The table of predicted on-time shares, beside the tables that they are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.statistics import NetworkStatistics, subscriber_of
from betimes.model.subscriptions import Subscription
from betimes.pipeline.tables.files import arrow_schema, current_tables, read_arrow
from betimes.pipeline.tables.shapes import PREDICTIONS
from betimes.prediction.predict import Prediction

BY_TWIN = "twin"  # in place of a model's name: a twin was simulated, under the strategy that was planned
Person = tuple[str, str]  # subscriber and home
Row = dict[str, Any]


def write_predictions(
    directory: Path, statistics: NetworkStatistics, prediction: Prediction, *, made_at_s: float
) -> None:
    """Write the prediction for every subscription into the current tables, in one step."""
    forecasts = {each.subscriber: each for each in prediction.subscribers}
    rows = [
        {
            **_whose(each),
            "model": prediction.model.value,
            "on_time_share": forecasts[each.id].share,
            "on_time_share_low": forecasts[each.id].low,
            "on_time_share_high": forecasts[each.id].high,
            "made_at_s": made_at_s,
            "learned_at_s": statistics.learned_at_s,
        }
        for each in statistics.subscriptions
        if each.id in forecasts
    ]
    write_rows(directory, rows)


def twin_rows(
    subscriptions: Iterable[Subscription],
    played: Mapping[str, tuple[float, float | None]],
    *,
    made_at_s: float,
    learned_at_s: float | None,
) -> list[Row]:
    """Return the prediction of a twin for subscriptions, from mean and deviation over its seeds."""
    return [
        {
            **_whose(each),
            "model": BY_TWIN,
            "on_time_share": share,
            "on_time_share_low": max(share - (deviation or 0.0), 0.0),
            "on_time_share_high": min(share + (deviation or 0.0), 1.0),
            "made_at_s": made_at_s,
            "learned_at_s": learned_at_s,
        }
        for each in subscriptions
        for share, deviation in [played[each.id]]
    ]


def write_rows(directory: Path, rows: Sequence[Row]) -> None:
    """Write predicted rows into the current tables, in one step."""
    folder = current_tables(directory) / PREDICTIONS.name
    folder.mkdir(exist_ok=True)
    part = folder / "part-00000.parquet"
    new = folder / ".part-00000.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), arrow_schema(PREDICTIONS.ddl)), new)
    new.replace(part)


def kept_predictions(folder: Path, model: str | None = None) -> dict[Person, list[float]]:
    """Return the predicted shares in the tables of a run, one for each subscription; of one model, or all."""
    found: dict[Person, list[float]] = {}
    if (folder / PREDICTIONS.name).is_dir():
        for row in read_arrow(PREDICTIONS, folder).to_pylist():
            if model in (None, row["model"]):
                found.setdefault((row["subscriber"], row["home"]), []).append(row["on_time_share"])
    return found


def _whose(subscription: Subscription) -> dict[str, str]:
    return {
        "subscriber": subscriber_of(subscription),
        "home": subscription.home,
        "pattern": subscription.pattern,
    }
