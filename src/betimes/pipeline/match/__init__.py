"""Matching millions of subscriptions with any number of events, as Spark tasks.

Imports `matching`, `model`, and of the pipeline `rows`, `spark` and `tables`. Begin reading at `api.py`:
`match` takes frames and returns a frame; `files.py` writes Parquet files instead. `plan.py` chooses between
one index (`tasks.py`; `shared_set.py` brings it to the workers) and cells (`cells.py`, `exchange.py`);
`forms.py` is the form of the answer. It knows nothing of bounds or delays: `pipeline/replay` adds those.
"""
