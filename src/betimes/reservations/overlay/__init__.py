"""Routing below reservations: a distributed hash table, and a mesh of given links.

Both have the interface `OverlayRouting` of `reservations.rendezvous`. `dht` is the paper's hash table,
which only the simulator runs; `mesh` serves live brokers, which know all links. `identifiers` maps names to
the ring, `coordinates` estimates latencies. Begin with `identifiers`.

The package imports `routing` and the signals of `reservations`. It reserves nothing.
"""
