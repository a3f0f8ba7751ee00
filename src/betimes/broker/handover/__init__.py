"""Handover: moving a session to the broker at which its client connects.

Begin reading at `incoming.py` (`Handovers`, the extension of the hub). `inquiry.py` finds the broker that has
the session, `outgoing.py` sends it, `packets.py` has the messages.

It may import `broker.links`, `broker.durability`, `broker.core`, `broker.delivery`, and the packages below
the broker. It does not move wills or messages of QoS 0, and it does not serialise sessions itself
(`broker.durability.session_rows` does).
"""
