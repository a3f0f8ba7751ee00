"""The client without an event loop: `client.py` for programs, the other files for tasks on Spark.

A task does one thing at a time and wants it fast: `ranges.py` reads what a broker has kept, `publish.py`
publishes in bulk, both over `connection.py`, which has no thread, and goes on at the next broker.
"""
