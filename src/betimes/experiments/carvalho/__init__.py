"""The figures of Carvalho et al. (004): guarantees by reservation over an overlay.

Imports `reservations` and `simulator`. Begin reading at `network.py`, the paper's setting and one run of it;
then `fig4.py`, the panels of figure 4, and the claim of O(log n).
"""
