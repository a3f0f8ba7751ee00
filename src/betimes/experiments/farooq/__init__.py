"""The figures of Farooq et al. (003): losses of mobile subscribers, and buffers that prevent them.

Imports `simulator/mobility.py` and `model`. Begin reading at `mobility.py`, the paper's setting, one run of
it and the closed forms; then `fig4_to_7.py` and `fig8_to_12.py`. The rates that live brokers
sustain are not here: see `benchmarks/bench_modes.py`.
"""
