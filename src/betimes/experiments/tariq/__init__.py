"""The figures of Tariq et al. (002): an overlay of peers without brokers that keeps delay bounds.

Imports `peers` and `simulator/peers`. Begin reading at `peers.py`, the overlay and what is measured of it;
then `fig5_6.py`.
"""
