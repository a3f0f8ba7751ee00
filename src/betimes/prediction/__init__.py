"""Prediction of on-time shares, and admission by them (Pongthawornkamol, paper 001).

`predict.predict` is the entrance: from the statistics of a network to the on-time share of every
subscriber. Begin there, then read `forecasts` (waits at all stations), `queueing` (the formulas) and
`demand` (the events that are wanted). `admission` decides on one more subscription, `admission_policies` on
a whole set, `losses` names the place that costs a subscriber most.

The package imports `model`, `kernels`, `matching` and `routing`. It learns no statistics (`pipeline` does)
and simulates nothing.
"""
