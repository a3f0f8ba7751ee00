"""How are 512 subscriptions looked at in one step? As eight 64-bit words, in vector registers.

A value of type `Words8` lives only inside a kernel. LLVM maps it to one AVX-512 register, two of AVX2
or four of NEON, so the kernels need no second version per machine. Loops over eight array elements were
tried first: LLVM could not prove that the accumulator does not alias the table, and left them scalar.
"""

# ruff: noqa: ARG001 -- numba asks for the names of all arguments, though only their types are used

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_VECTOR = ir.VectorType(ir.IntType(64), 8)
_CELLS = ir.VectorType(ir.IntType(16), 8)


class Words8(types.Type):
    """The numba type of eight 64-bit words."""

    def __init__(self) -> None:
        super().__init__(name="Words8")


@register_model(Words8)
class _Words8Model(models.PrimitiveModel):
    def __init__(self, manager: Any, front_end_type: Any) -> None:
        super().__init__(manager, front_end_type, _VECTOR)


_words8 = Words8()


def _pointer(
    context: Any, builder: Any, array_type: Any, array: Any, start: Any, vector: Any = _VECTOR
) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [start]), vector.as_pointer())


@intrinsic
def load8(_context: Any, array: Any, start: Any) -> Any:
    """Return the eight words of the array from `start` on."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        return builder.load(pointer, align=8)

    return _words8(array, types.int64), build


@intrinsic
def store8(_context: Any, array: Any, start: Any, words: Any) -> Any:
    """Write the eight words into the array from `start` on."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.void(array, types.int64, _words8), build


@intrinsic
def both8(_context: Any, one: Any, other: Any) -> Any:
    """Return the bits set in both."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.and_(*arguments)

    return _words8(_words8, _words8), build


@intrinsic
def without8(_context: Any, one: Any, other: Any) -> Any:
    """Return the bits set in the first and not in the second."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        ones = ir.Constant(_VECTOR, [-1] * 8)
        return builder.and_(arguments[0], builder.xor(arguments[1], ones))

    return _words8(_words8, _words8), build


@intrinsic
def nonzero8(_context: Any, words: Any) -> Any:
    """Return a number with bit i set where word i is not zero."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        flags = builder.icmp_unsigned("!=", arguments[0], ir.Constant(_VECTOR, [0] * 8))
        return builder.zext(builder.bitcast(flags, ir.IntType(8)), ir.IntType(64))

    return types.uint64(_words8), build


@intrinsic
def lowest_bit(_context: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a word; 64 where none is set."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), build


@intrinsic
def bit_count(_context: Any, word: Any) -> Any:
    """Return how many bits of a word are set."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), build


@intrinsic
def compare_cells(_context: Any, cells: Any, cells_start: Any, ends: Any, ends_start: Any) -> Any:
    """Compare eight cells with eight first cells and, behind these in `ends`, eight last cells.

    In the answer bit i is set where cell i is outside; bit i + 8 where it is one of the two ends, so that
    it does not tell. A last cell of 65535 is no end: such a row does not look at the lane.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8), ir.IntType(64)

        def load(place: int, start: Any) -> Any:
            array_type, array = signature.args[place], arguments[place]
            return builder.load(_pointer(context, builder, array_type, array, start, _CELLS), align=2)

        def mask(flags: Any) -> Any:
            return builder.zext(builder.bitcast(flags, byte), word)

        cell, low = load(0, arguments[1]), load(2, arguments[3])
        high = load(2, builder.add(arguments[3], ir.Constant(word, 8)))
        below = builder.icmp_unsigned("<", cell, low)
        above = builder.icmp_unsigned(">", cell, high)
        at_low = builder.icmp_unsigned("==", cell, low)
        at_high = builder.icmp_unsigned("==", cell, high)
        is_end = builder.icmp_unsigned("!=", high, ir.Constant(_CELLS, [65535] * 8))
        at_end = builder.and_(builder.or_(at_low, at_high), is_end)
        outside = mask(builder.or_(below, above))
        return builder.or_(outside, builder.shl(mask(at_end), ir.Constant(word, 8)))

    return types.int64(cells, types.int64, ends, types.int64), build


@intrinsic
def fetch_line(_context: Any, array: Any, start: Any) -> Any:
    """Begin to bring the cache line of an element near, without waiting for it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        number = ir.IntType(32)
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
        )
        builder.call(prefetch, [address, number(0), number(3), number(1)])  # to read, keep near, data
        return context.get_dummy_value()

    return types.void(array, types.int64), build
