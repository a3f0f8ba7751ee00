"""Betimes for your own Spark jobs: `match` events with subscriptions, `prepare` an index of subscriptions.

Functions take DataFrames of your session and return lazy DataFrames of it. The session may be classic or
Spark Connect, local or on a cluster; Betimes sets nothing in it and writes no files. Workers need Betimes
and what it depends on. Rows that cannot be read come back as a frame of their own (`rejected`).

Imports `pipeline` and what that imports. Begin reading at `matching.py`; `index.py` is the prepared index.
Commands that read and write files are in `cli`, and the jobs behind them in `pipeline`.
"""

from __future__ import annotations

from betimes.spark.index import PrepareError, SubscriptionIndex, prepare
from betimes.spark.matching import Matched, StreamError, match

__all__ = ["Matched", "PrepareError", "StreamError", "SubscriptionIndex", "match", "prepare"]
