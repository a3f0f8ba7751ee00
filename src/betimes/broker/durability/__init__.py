"""Durability: the state of a hub that survives a crash, and how it is restored.

Begin reading at `store.py` (`Store`, an extension of the hub, and the rule that a commit comes before an
acknowledgement), then `restore.py` (the way back). `session_rows.py` serialises sessions, for the store and
for a handover.

It may import `broker.core`, `broker.delivery`, `broker.storage`, and the packages below the broker. It writes
no file itself (`broker.storage.sqlite_file` does), and it keeps no deliveries of QoS 0.
"""
