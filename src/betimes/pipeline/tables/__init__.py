"""The tables of a network as Parquet folders: their columns, their places, and how a new set replaces one.

Imports `model`, `prediction`, `telemetry`, and of the pipeline only the names in `spark/lazy.py`. Begin
reading at `shapes.py`, which defines every table, then `files.py`, which writes a new set and makes it the
current one. `predictions.py` keeps predicted shares beside them, `report_facts.py` sums tables up for
reports, and `parquet.py` writes the typed tables of sweeps. It computes no table: the jobs do.
"""
