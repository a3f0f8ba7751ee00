"""durability."""
