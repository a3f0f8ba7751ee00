"""The values that all packages share: events, filters, subscriptions, links, statistics, telemetry, errors.

Begin with `events`, `filters` and `subscriptions`; `topology` describes a network, `statistics` what is
learned of one, `telemetry` the records of brokers, and the `*_settings` the contents of configuration
files.

The package imports nothing of Betimes. Its values are frozen; it makes no decisions, and has no clock and
no randomness.
"""
