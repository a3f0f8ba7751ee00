"""The Spark pipeline: tables from telemetry, jobs over millions of rows. Only this package imports Spark.

`spark` opens sessions and follows jobs; `tables` defines, reads and writes the Parquet tables; `rows` turns
big tables of events and subscriptions into columns. On these stand the jobs: `telemetry` (from records to
tables and a model), `live` (telemetry while it is written), `match` (which subscribers want which events),
`replay` (recorded events, other subscriptions), `sweeps` (many simulations), `streams` (brokers as a Spark
data source) and `twin` (a simulated network made from the tables).

May import every package below the experiments. Begin reading at `telemetry/job.py`. It prints nothing and
reads no command line: that is the work of `cli` and `terminal`.
"""
