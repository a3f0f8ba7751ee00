"""The twin: a simulated network made from the tables of a live one.

Imports `simulator`, and of the pipeline `tables`, `telemetry` and `live`. Begin reading at `twin.py`. The
twin replays recorded events instead of sampling a fitted distribution. It does not start Spark, and runs no
simulation itself.
"""
