"""The figures of Carvalho et al. (004): guarantees by reservation over an overlay.

Imports `reservations` and `simulator`. Begin reading at `network.py`, the paper's setting and one run of it;
then `fig4.py` and `fig4e_f.py`, the panels of figure 4, and `growth.py`, the claim of O(log n). `flooding.py`
has the alternatives that the paper compares with.
"""
