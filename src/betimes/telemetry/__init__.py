"""Telemetry as Parquet files: writing and reading the records of `model/telemetry.py`.

Imports `model` and pyarrow, nothing else. Begin reading at `files.py`: `TelemetryWriter` writes parts,
`read_table` reads them. `messages.py` packs records into MQTT messages, `spool.py` turns such messages into
files again. It decides nothing about sampling (`broker/observe` does) and computes nothing from records
(`pipeline/telemetry` does).
"""
