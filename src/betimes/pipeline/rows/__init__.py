"""Big tables of events and subscriptions as columns that the index can match.

Imports `model`, `language`, `matching`, and of the pipeline `spark` and `tables`. Begin reading at
`sources.py`: tasks read row groups of Parquet files themselves, or rows that Spark hands them. `events.py`
and `subscriptions.py` say which columns mean what and set unreadable rows aside; `subscription_set.py` is the
index that worker processes map into memory, and `topic_lanes.py` how it looks up topics. It plans no job:
`pipeline/match` does.
"""
