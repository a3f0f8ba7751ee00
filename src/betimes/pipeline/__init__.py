"""The same questions for millions of rows. The only room that knows Spark."""
