"""The figures of Pongthawornkamol and Nahrstedt (001): predicted and measured on-time shares, and admission.

Imports `prediction`, `model` and `simulator/matching_stations.py`. Begin reading at `network.py`, the paper's
network; then `fig4_to_7.py`, which runs it and compares predictions, and admits subscribers.
"""
