"""The MQTT client of a Python program: `betimes.connect` and `betimes.connect_sync`.

One state machine (`mqtt/client_protocol.py`), one policy (`core.py`), two drivers. Begin reading at
`core.py`: a `ClientCore` is a client without I/O, whose flows yield effects (`effects.py`). Below it is
`broker_connection.py`, one connection to one broker. `connection.py` with `asyncio_driver.py` performs the
effects on an event loop, `blocking/client.py` with `blocking/socket_exchange.py` by a thread. Only these
import asyncio, sockets or threads.

Imports `model`, `language` and `mqtt`. It knows no broker, and plans nothing.
"""
