"""Publish/subscribe peers without brokers (Tariq, paper 002).

`peer.Peer` is the entrance and the place to begin reading: a state machine without I/O that exchanges
`messages` with other peers. `candidates` and `parents` choose the parents to ask, `children` the peers to
feed, `coverage` records the parent of each dz-expression, `accuracy` how much unwanted traffic a peer
accepts. `settings` selects the paper's protocol or ours.

The package imports `model` and `matching` (dz-expressions). It has no sockets and no clock; the simulator
and `broker.peers` drive it.
"""
