"""What does one participant do? Input and time in, effects out; no clock, socket or chance of its own."""
