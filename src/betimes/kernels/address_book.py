"""The address book: one array that states where the arrays of a kernel are.

Passing one array to compiled code takes about a tenth of a microsecond, which is most of the time that one
event needs among few subscriptions. An address book replaces dozens of such arguments. The owner of the
book must own the arrays: they must neither move nor be freed while the book is in use.
"""

# ruff: noqa: ARG001 -- numba asks for the names of all arguments, though only their types are used

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

_COLUMNS = 3


def address_book(arrays: Iterable[NDArray[Any]]) -> NDArray[np.int64]:
    """Return for each array, of one or two dimensions: address, rows, columns."""
    return np.array([address_of(array) for array in arrays], np.int64).reshape(-1, _COLUMNS)


def address_of(array: NDArray[Any]) -> tuple[int, int, int]:
    """Return the array's entry in the book."""
    assert array.flags.c_contiguous
    assert array.ndim <= 2
    return array.__array_interface__["data"][0], array.shape[0], array.shape[1] if array.ndim == 2 else 1


def _array_in(dimensions: int, kind: Any) -> Any:
    """Return the signature and the builder of code that makes an array from an entry of the book."""
    made = types.Array(kind.dtype, dimensions, "C")
    book_type = types.Array(types.int64, 2, "C")

    def build(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        lines = context.make_array(book_type)(context, builder, arguments[0]).data
        word = ir.IntType(64)
        start = builder.mul(arguments[1], ir.Constant(word, _COLUMNS))
        address, *shape = (
            builder.load(builder.gep(lines, [builder.add(start, ir.Constant(word, column))]))
            for column in range(1 + dimensions)
        )
        array = context.make_array(made)(context, builder)
        item = context.get_abi_sizeof(context.get_data_type(made.dtype))
        strides = [ir.Constant(word, item)]
        if dimensions == 2:
            strides.insert(0, builder.mul(shape[1], ir.Constant(word, item)))
        populate_array(
            array,
            data=builder.inttoptr(address, array.data.type),
            shape=shape,
            strides=strides,
            itemsize=ir.Constant(word, item),
            meminfo=None,
        )
        return array._getvalue()

    return made(book_type, types.int64, kind), build


@intrinsic
def list_in(_context: Any, book: Any, place: Any, kind: Any) -> Any:
    """Return the array of one dimension and this element type at this entry of the book."""
    return _array_in(1, kind)


@intrinsic
def table_in(_context: Any, book: Any, place: Any, kind: Any) -> Any:
    """Return the array of two dimensions and this element type at this entry of the book."""
    return _array_in(2, kind)
