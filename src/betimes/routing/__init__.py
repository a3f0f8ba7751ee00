"""Routes between brokers: link state, shortest paths, and the routing table of each broker.

`link_state` collects what brokers announce of themselves, `shortest_paths` computes paths from the links,
and `routing_table` holds one broker's routes, which `scheduling` uses. `link_estimates` measures a link's
speed. Begin with `routing_table`.

The package imports `model` only. It has no sockets and no clock; the drivers flood the bulletins.
"""
