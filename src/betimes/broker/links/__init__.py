"""Links with other brokers: the federation, one end of a link, its packets, custody and reservations.

Begin reading at `federation.py` (`Federation`: bulletins, forwarding, custody), then `broker_link.py` (one
link, from CONNECT on) above `link_base.py`. `packets.py` has the bytes, `timing.py` the measurements and the
send window, `reservations.py` the bandwidth of links.

It may import `broker.durability`, `broker.core`, `broker.delivery`, `broker.storage`, and the packages below
the broker. It opens no socket (`broker.net` dials) and makes no scheduling decision (`scheduling.Broker`
does).
"""
