"""wang."""
