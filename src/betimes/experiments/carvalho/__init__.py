"""carvalho."""
