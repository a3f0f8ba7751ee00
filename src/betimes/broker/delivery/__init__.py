"""From a publication to the outboxes of clients: subscriptions, fan-out, sessions, queues, flow control.

Begin with `fan_out.py`, then `session.py` and `outbox.py`; `flow.py` is back-pressure. Sans-I/O: time is an
argument, and the driver writes the outboxes. It does not know packets that come in (`core`), nor links or
stores.
"""
