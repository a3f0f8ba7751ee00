"""What would happen? The brokers of `node` on a virtual clock, with drawn links and faults."""
