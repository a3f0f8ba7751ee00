"""The replay buffer: published messages that subscribers resume from (Farooq, paper 003).

`buffer.PartitionedBuffer` is the entrance and the place to begin reading. `overwriting` has the policies
that choose what a full partition overwrites, `number_ranges` records which numbers of an origin arrived.

The package imports `model`, `language` and `matching`. An item in the buffer is opaque. The package reads
no clock and writes no files; `broker.replay` does.
"""
