"""tariq."""
