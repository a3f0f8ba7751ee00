"""Where is it kept what was predicted? In a table beside those that it was predicted from."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from betimes.model.statistics import NetworkStatistics, subscriber_of
from betimes.pipeline.table_files import current_tables
from betimes.pipeline.tables import PREDICTIONS
from betimes.qos.prediction import Prediction


def write_predictions(
    directory: Path, statistics: NetworkStatistics, prediction: Prediction, *, made_at_s: float
) -> None:
    """Write what is predicted for every subscription into the current tables, in one step."""
    forecasts = {each.subscriber: each for each in prediction.subscribers}
    rows = [
        {
            "subscriber": subscriber_of(each),
            "home": each.home,
            "pattern": each.pattern,
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
    texts = ("subscriber", "home", "pattern", "model")
    schema = pa.schema([(name, pa.string() if name in texts else pa.float64()) for name in PREDICTIONS.names])
    folder = current_tables(directory) / PREDICTIONS.name
    folder.mkdir(exist_ok=True)
    part = folder / "part-00000.parquet"
    new = folder / ".part-00000.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), new)
    new.replace(part)
