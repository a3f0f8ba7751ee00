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
    model, learned_at_s = prediction.model.value, statistics.learned_at_s
    forecasts = {each.subscriber: each for each in prediction.subscribers}
    known = [(each, forecasts[each.id]) for each in statistics.subscriptions if each.id in forecasts]
    rows = [
        _row(each, model, found.share, found.low, found.high, made_at_s, learned_at_s)
        for each, found in known
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
    rows = []
    for each in subscriptions:
        share, deviation = played[each.id][0], played[each.id][1] or 0.0
        low, high = max(share - deviation, 0.0), min(share + deviation, 1.0)
        rows.append(_row(each, BY_TWIN, share, low, high, made_at_s, learned_at_s))
    return rows


def _row(subscription: Subscription, *facts: object) -> Row:
    whose = (subscriber_of(subscription), subscription.home, subscription.pattern)
    return dict(zip(PREDICTIONS.names, (*whose, *facts), strict=True))


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
