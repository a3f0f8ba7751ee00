"""Compilation of hot loops by numba.

`compile` has the decorators `kernel` and `inlined`; begin there. `address_book` passes many arrays to a
kernel as one argument.

The package imports numba, llvmlite and numpy, and nothing of Betimes. It has no kernels of its own: they
are in the packages that use them (`matching`, `scheduling`, `prediction`).
"""
