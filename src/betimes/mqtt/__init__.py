"""MQTT 5 and 3.1.1 without I/O, for the broker and the client alike.

Begin reading at `codec.py` (bytes to packets and back; `validation.py` before it decodes, `mqtt311.py` for
the older version) and `client_protocol.py` (the client as a state machine). `packet_batch.py`,
`packet_scan.py` and `packet_writer.py` handle many PUBLISH packets at once; `subscribe_options.py` reads
Betimes's user properties.

It may import `kernels`, `language` and `model`. It has no socket, no clock and no broker: sessions,
subscriptions and routing are in `broker`.
"""
