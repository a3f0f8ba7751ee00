"""Scheduling of messages by deadline and price (Wang 2006, paper 000).

`broker.Broker` is the entrance and the place to begin reading: a state machine without I/O that takes
messages and times and returns `effects`. It keeps waiting messages in `output_queue`, finds their value in
`demand_table`, and chooses by `strategies`, which rank what `appraisal` computed.

The simulator and the live broker drive the same classes. The package imports `model`, `kernels`, `matching`
and `routing`, and none of the other papers' packages. It opens no sockets, reads no clock and computes no
routes.
"""
