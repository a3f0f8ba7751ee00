"""Spark itself: a Java to run it, the session, its worker processes, and jobs that report and stop.

Imports `model` and, to ship it, `kernels`; no other part of the pipeline. Begin reading at `session.py`:
`open_session` is the only place at which Spark is opened. `java.py` finds a Java, `shipping.py` sends Betimes
to a cluster, `watched_jobs.py` follows a job. `lazy.py`, `class_archive.py` and `worker_daemon.py` only make
starts faster. It knows nothing of tables or events.
"""
