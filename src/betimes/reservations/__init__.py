"""reservations."""
