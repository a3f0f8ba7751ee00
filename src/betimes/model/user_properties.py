"""What are the user properties called that Betimes adds to MQTT? Those of messages begin with $."""

from __future__ import annotations

OWN = "$"  # what begins with it is Betimes's, and no attribute
DEADLINE, IMPORTANCE, ID, AGE = "$deadline", "$importance", "$id", "$age"
KEY = "$key"  # a publisher's own name of a message, so that it counts once however often it is sent

SIGNATURE = "$signature"  # of the control centre, on a model

FILTER, MAX_DELAY, PRICE, RELIABILITY = "filter", "max-delay", "price", "reliability"
BANDWIDTH, LATENCY = "bandwidth", "latency"  # to be reserved along the way; on a SUBACK, what is or would fit
DEFINITE = "definite"  # on a SUBACK: whether asking again could help
ADVERTISE = "advertise"  # on a CONNECT: what a publisher's events will take
RESUME_AFTER, RESUME_LATE, RESUME_UNTIL = "resume-after", "resume-late", "resume-until"
NOW, ALL = "now", "all"  # start here; even what is too late
OUTSTANDING, POSITION, BUFFERED = "outstanding", "position", "buffered"  # on the SUBACK of who resumes
GAPS, LOST, KEPT, PART = "gaps", "lost", "kept", "part"  # on that of who reads a range
GAP_TOPIC = "$betimes/gap"  # with the client's id below it
RESERVATION_TOPIC = "$betimes/reservation"  # likewise

ATTRIBUTES_MAX = 256  # of one event
