"""dz-expressions: bit strings that name parts of an event space (paper 002).

`expressions` has the algebra and is the place to begin; `spaces` turns filters and events into expressions,
and `columns` does the same for millions of rows.

The package imports `model` and `kernels`. It knows nothing of peers.
"""
