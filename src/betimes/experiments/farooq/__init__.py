"""farooq."""
