"""Matching of events against subscriptions: content filters and topic patterns.

`index/` holds many filters so that an event finds those that it matches without a look at the others; begin
with `index/index.py`. `topics` matches MQTT topics and patterns, `dz/` has the dz-expressions of paper 002,
and `columns` is the numpy twin of `Filter.matches`.

The package imports `model` and `kernels`. It parses no filters (`language.filters` does) and knows nothing
of clients, prices or bounds.
"""
