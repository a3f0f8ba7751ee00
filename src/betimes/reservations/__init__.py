"""Reservations of bandwidth and latency along whole routes (Carvalho, paper 004).

`node.ReservingNode` is the entrance: a state machine without I/O that exchanges `signals` with its
neighbours. Begin there, then read `requests` (a subscriber's request and its outcome), `rendezvous` (where
publishers and subscribers meet), `flow_tree` (the flows at a node) and `link_accounts` (the bandwidth of
each link).

`overlay/` holds the hash table and the mesh that find the next hop. `flow_tree` also turns reservations into
shares and pins for `scheduling`, which this package does not import. It imports `model`, `language` and
`routing`. It has no sockets and no clock.
"""
