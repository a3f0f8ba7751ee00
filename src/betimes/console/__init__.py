"""What people touch: the commands, the pictures, the tables."""
