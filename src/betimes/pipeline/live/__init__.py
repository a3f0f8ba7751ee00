"""Telemetry while it is written: a Structured Streaming query that keeps a window of rows and its tables.

Imports `prediction`, `telemetry`, and of the pipeline `tables` and `telemetry`. Begin reading at `stream.py`,
which finds new files; `rows.py` keeps the good rows of the last while, `tables.py` makes tables and a model
from them, `alarms.py` compares measured with predicted shares. It sends nothing to brokers: `control` does.
"""
