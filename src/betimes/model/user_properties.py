"""What are the user properties called that Betimes adds to MQTT? Those of messages begin with $."""

from __future__ import annotations

OWN = "$"  # what begins with it is Betimes's, and no attribute
DEADLINE, IMPORTANCE, ID, AGE = "$deadline", "$importance", "$id", "$age"

FILTER, MAX_DELAY, PRICE, RELIABILITY, BANDWIDTH = "filter", "max-delay", "price", "reliability", "bandwidth"

ATTRIBUTES_MAX = 256  # of one event
