"""pongthawornkamol."""
