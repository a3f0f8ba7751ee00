"""Admission by on-time share: answers to subscriptions that ask for a `reliability`.

`admission.py` is the extension of the hub; `model_packets.py` reads and writes the signed messages of the
control centre. The prediction itself is `betimes.prediction`; models are worked out by
`broker/net/background.py`.
"""
