"""Recorded events replayed to subscriptions that did not exist: which would have arrived, and in time.

Imports `routing`, `scheduling`, and of the pipeline `match`, `rows`, `spark` and `tables`. Begin reading at
`replay.py`; `terms.py` reads the subscriptions, `delays.py` computes the delay to every home (Wang 2006, eqs.
4 and 5). It is arithmetic on what was measured: it runs no simulation (`pipeline/twin` does), and the added
load is not in it.
"""
