"""Brokers as a Spark data source: `format("betimes")` for reading and writing, batch and streaming.

Imports `client` (the blocking one), `language` and `model`; nothing else of the pipeline. Begin reading at
`data_source.py`; `source.py` reads ranges of the replay buffer, `losses.py` ends a query on losses or records
them, `pushdown.py` translates predicates, `sink.py` publishes rows, `rows.py` converts messages, `options.py`
reads the options. Exactly-once reading holds as long as the broker
keeps the range.
"""
