"""The names of the user properties that Betimes adds to MQTT. Those of messages begin with $."""

from __future__ import annotations

OWN = "$"  # a name with this prefix belongs to Betimes, and is no attribute
DEADLINE, IMPORTANCE, ID, AGE = "$deadline", "$importance", "$id", "$age"
PUBLISHED = "$published"  # in a range: when it was published, in microseconds of the Unix epoch
KEY = "$key"  # a publisher's own id of a message, to drop duplicates

SIGNATURE = "$signature"  # of the control centre, on a model

FILTER, MAX_DELAY, PRICE, RELIABILITY = "filter", "max-delay", "price", "reliability"
# to be reserved along the route; on a SUBACK, what is reserved or would fit
BANDWIDTH, LATENCY = "bandwidth", "latency"
DEFINITE = "definite"  # on a SUBACK: whether a later request could succeed
ADVERTISE = "advertise"  # on a CONNECT: the bandwidth of a publisher's events
RESUME_AFTER, RESUME_LATE, RESUME_UNTIL = "resume-after", "resume-late", "resume-until"
NOW, ALL = "now", "all"  # start here; include what is too late
# on the SUBACK of a subscriber that resumes
OUTSTANDING, POSITION, BUFFERED = "outstanding", "position", "buffered"
# on the SUBACK of a client that reads a range
GAPS, LOST, UNKNOWN, KEPT, PART = "gaps", "lost", "unknown", "kept", "part"
GAP_TOPIC = "$betimes/gap"  # with the client's id below it
RESERVATION_TOPIC = "$betimes/reservation"  # likewise

ATTRIBUTES_MAX = 256  # of one event
