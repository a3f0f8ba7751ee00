"""The figures of Wang et al. (000): scheduling by deadline and price.

Imports `scheduling`, `model` and `simulator`. Begin reading at `network.py`, the paper's world, one run of it
and the claims that figures share; then `fig4.py`, `fig5.py` and `fig6.py`.
"""
