"""How is what happened written down and read back? Parquet files of the records in `model.telemetry`."""
