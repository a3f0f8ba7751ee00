"""prediction."""
