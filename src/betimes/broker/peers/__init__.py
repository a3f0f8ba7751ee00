"""Peers without brokers, live: the driver of `betimes.peers` over MQTT links.

Begin reading at `overlay.py` (`PeerOverlay`, the network of a small broker), then `link.py` (one link) and
`outbox.py` (links and waiting messages). `view.py` has the peers known by gossip, `packets.py` the messages
as JSON, `settings.py` what all peers share.

It may import `broker.links`, `broker.core`, `broker.delivery`, and the packages below the broker. It opens no
socket (`broker.net` dials), decides nothing about parents and children (`peers.Peer` does), and stores
nothing.
"""
