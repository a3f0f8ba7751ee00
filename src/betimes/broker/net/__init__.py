"""Sockets, TLS, timers and threads: the only folder of the broker with an event loop, besides `server.py`.

Begin with `socket_line.py` (one socket), `listener.py` (all of them, and the clock) and `write_loop.py`
(commit, then write). `backpressure.py` makes publishers wait, `dialer.py` opens
connections to neighbours, `http_pages.py` serves metrics. Decides nothing about messages.
"""
