"""Betimes: publish/subscribe for information that goes stale."""

__version__ = "0.1.0"
