"""The hub and what answers packets: CONNECT, PUBLISH, SUBSCRIBE.

Begin with `handlers.py` (which function answers which packet), then `publish.py` and `hub.py`.
`connection.py` is the receiving half of a connection. `extension.py` and `network.py` are the two interfaces
behind which everything stands that not every broker needs. Imports `delivery`, `replay` and `access`; no
socket, no store, no link.
"""
