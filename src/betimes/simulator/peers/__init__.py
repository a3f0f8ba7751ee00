"""Overlays of thousands of peers, cycle by cycle (Tariq et al., 002, section 6).

Imports `peers` and `matching`. Begin reading at `network.py`: `PeerNetwork` gives every peer its turn and
carries messages. `renew_views` is the gossip by which peers learn of each other, `worlds.py` draws
subscriptions and events. `floods.py` sends many events at once through an overlay that does
not change meanwhile, compiled. The behaviour of a peer is in `peers/peer.py`, not here.
"""
