"""Which way does a message travel, and what is known of that way?"""
