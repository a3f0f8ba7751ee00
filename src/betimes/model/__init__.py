"""What things are: events, filters, subscriptions, links, topologies, distributions, telemetry, errors.

Frozen values, no decisions, no clock, no chance.
"""
