"""The figures of the five papers as data: parameter rows to run, points to draw, and claims to check.

One folder for each paper, one module for its figures of one kind. Begin reading at `figure.py`, which defines
`Figure`, then at `wang/fig4_to_6.py`; `catalogue.py` lists all of them. The module of a paper that is named
after what it simulates (`network.py`, `mobility.py`, `peers.py`) has the setting that its figures share.

Imports the simulator and the papers' packages. It draws nothing (`reporting` does), and opens no Spark
(`pipeline/sweeps` runs the rows).
"""
