"""What a broker tells about itself: telemetry records, statistics, Prometheus metrics, $SYS topics.

Begin with `event_recorder.py` (telemetry) and `statistics.py` (one look at a moment). Nothing below imports
it: the hub reports to a protocol (`delivery/telemetry_recorder.py`).
"""
