"""Guarantees of bandwidth and latency for clients of this broker (004).

`guarantees.py` is the extension that holds a SUBSCRIBE until the network has answered, with the table of a
guarantee's states; `advertisements.py` is what publishers advertise. Reservations on links are
`broker/links/reservations.py` over `betimes.reservations`.
"""
