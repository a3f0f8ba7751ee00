"""How does a program talk to a broker? An asynchronous MQTT client that knows filters, bounds and prices."""
