"""Spark itself: a Java to run it, the session, its worker processes, and jobs that report and stop.

Imports `model` and, to ship it, `kernels`; no other part of the pipeline. Begin reading at `session.py`:
`open_session` is the only place at which Spark is opened, and sends Betimes to a cluster. `java.py` finds a
Java and the archive of its classes, `watched_jobs.py` follows a job. `lazy.py` and `worker_daemon.py` only
make starts faster. It knows nothing of tables or events.
"""
