"""From telemetry to tables: the pipeline's main job, and the model learned from the tables.

Imports `model`, `language`, `telemetry`, and of the pipeline `rows`, `spark` and `tables`. Begin reading at
`job.py`: `input.py` opens the files, `survey.py` finds brokers, times and the offsets of clocks,
`quarantine.py` separates good from bad rows; `distributions.py`, `histograms.py` and `wanted_events.py`
compute derived tables;
`model.py` turns tables into statistics, without Spark. It predicts nothing: `prediction`
does.
"""
