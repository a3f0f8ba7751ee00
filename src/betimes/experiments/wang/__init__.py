"""The figures of Wang et al. (000): scheduling by deadline and price.

Imports `scheduling`, `model` and `simulator`. Begin reading at `network.py`, the paper's world and one run
of it; then `fig4_to_6.py`.
"""
