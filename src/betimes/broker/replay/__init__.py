"""Replay for semi-durable subscribers on a live broker (003): the buffer, resuming, ranges.

Begin with `resume.py` (a client comes back) and `buffer.py` (what is kept, and how it comes in).
`recent_log.py` makes the newest messages fast to find; `range_read.py` reads between two
positions. What is overwritten first is decided by `betimes.replay`.
"""
