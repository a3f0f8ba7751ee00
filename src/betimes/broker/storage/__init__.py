"""Storage: tables that collect changes, and the SQLite file that they are committed to.

Begin reading at `change_tables.py` (no I/O), then `sqlite_file.py`.

It may import nothing of the broker, only `model`. It does not know what a session or a message is
(`broker.durability` does).
"""
