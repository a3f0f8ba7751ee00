"""Vector operations on 512 bits: one step tests 512 subscriptions, as eight 64-bit words.

A value of type `Words8` lives only inside a kernel. LLVM maps it to one AVX-512 register, two of AVX2
or four of NEON, so the kernels need no second version per machine. Loops over eight array elements were
tried first: LLVM could not prove that the accumulator does not alias the table, and left them scalar.
"""

# ruff: noqa: ARG001 -- numba asks for the names of all arguments, though only their types are used

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, 8)
_CODES = ir.VectorType(ir.IntType(16), 8)
_BYTES = ir.VectorType(ir.IntType(8), 64)
_FLAGS = ir.VectorType(ir.IntType(1), 64)
_PUT_AT_ONCE = 16

# Whether the processor packs bytes by a mask in one step; elsewhere LLVM needs 64 steps.
_PACKS_BYTES = bool(binding.get_host_cpu_features().get("avx512vbmi2", False))

ROWS_BEYOND = 64
"""So many places behind the last row may be written to when rows are put."""


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
    """Return a number with bit i set if word i is not zero."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return _nonzero(builder, *arguments)

    return types.uint64(_words8), build


@intrinsic
def lowest_bit(_context: Any, word: Any) -> Any:
    """Return the position of the lowest set bit of a word; 64 if none is set."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], cgutils.false_bit)

    return types.int64(types.uint64), build


@intrinsic
def count8(_context: Any, words: Any) -> Any:
    """Return the number of set bits of eight words."""

    def build(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        counts = builder.call(_llvm(builder, "ctpop.v8i64", _VECTOR, _VECTOR), arguments)
        return builder.call(_llvm(builder, "vector.reduce.add.v8i64", _WORD, _VECTOR), [counts])

    return types.int64(_words8), build


@intrinsic
def put_rows8(_context: Any, words: Any, base: Any, array: Any, place: Any) -> Any:
    """Write `base` plus the position of each set bit to the array from `place` on; return their number.

    For each word that is not zero, a full vector is written, even if fewer bits are set: a loop that ended
    at the last bit would be mispredicted at almost every word.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words, base, array, place = arguments
        put = _put_packed if _PACKS_BYTES else _put_each
        room = cgutils.alloca_once_value(builder, words)
        word_pointer = builder.bitcast(room, _WORD.as_pointer())
        stop = cgutils.alloca_once_value(builder, place)
        nonzero = _nonzero(builder, words)
        left = cgutils.alloca_once_value(builder, nonzero)
        with cgutils.for_range(builder, builder.ctpop(nonzero)):
            at = _take_bit(builder, left)
            word = builder.load(builder.gep(word_pointer, [at]))
            first = builder.add(base, builder.shl(at, _WORD(6)))
            now = builder.load(stop)
            put(
                builder,
                word,
                first,
                lambda kind, step: _pointer(
                    context, builder, signature.args[2], array, builder.add(now, step), kind
                ),
                context.get_data_type(signature.args[2].dtype),
            )
            builder.store(builder.add(now, builder.ctpop(word)), stop)
        return builder.sub(builder.load(stop), place)

    return types.int64(_words8, types.int64, array, types.int64), build


def _put_each(builder: Any, word: Any, first: Any, pointer: Any, number: Any) -> None:
    """Write the positions of a word's bits one by one."""
    left = cgutils.alloca_once_value(builder, word)
    with cgutils.for_range(builder, builder.ctpop(word)) as loop:
        row = builder.add(first, _take_bit(builder, left))
        row = row if number.width == 64 else builder.trunc(row, number)
        builder.store(row, pointer(number, loop.index))


def _put_packed(builder: Any, word: Any, first: Any, pointer: Any, number: Any) -> None:
    """Write the positions of a word's bits sixteen at a time: 0 to 63, packed by the word as a mask."""
    pack = _llvm(builder, "experimental.vector.compress.v64i8", _BYTES, _BYTES, _FLAGS, _BYTES)
    undefined = ir.Constant(_BYTES, ir.Undefined)
    packed = builder.call(pack, [_BYTES(list(range(64))), builder.bitcast(word, _FLAGS), undefined])
    numbers = ir.VectorType(number, _PUT_AT_ONCE)
    one = first if number.width == 64 else builder.trunc(first, number)
    single = builder.insert_element(ir.Constant(numbers, ir.Undefined), one, ir.IntType(32)(0))
    firsts = builder.shuffle_vector(single, single, _lanes([0] * _PUT_AT_ONCE))

    def put(start: int) -> None:
        some = builder.shuffle_vector(packed, undefined, _lanes(range(start, start + _PUT_AT_ONCE)))
        rows = builder.add(builder.zext(some, numbers), firsts)
        builder.store(rows, pointer(numbers, _WORD(start)), align=number.width // 8)

    put(0)
    with builder.if_then(builder.icmp_unsigned(">", builder.ctpop(word), _WORD(_PUT_AT_ONCE))):
        for start in range(_PUT_AT_ONCE, 64, _PUT_AT_ONCE):
            put(start)


def _take_bit(builder: Any, variable: Any) -> Any:
    """Return the position of a variable's lowest set bit, and clear that bit."""
    word = builder.load(variable)
    builder.store(builder.and_(word, builder.sub(word, _WORD(1))), variable)
    return builder.cttz(word, cgutils.true_bit)


def _nonzero(builder: Any, words: Any) -> Any:
    flags = builder.icmp_unsigned("!=", words, ir.Constant(_VECTOR, [0] * 8))
    return builder.zext(builder.bitcast(flags, ir.IntType(8)), _WORD)


def _llvm(builder: Any, name: str, answer: Any, *arguments: Any) -> Any:
    """Return one of LLVM's own functions."""
    kind = ir.FunctionType(answer, arguments)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}")


def _lanes(places: Iterable[int]) -> Any:
    """Return the elements that a shuffle takes."""
    chosen = list(places)
    return ir.Constant(ir.VectorType(ir.IntType(32), len(chosen)), chosen)


@intrinsic
def compare_codes(_context: Any, codes: Any, codes_start: Any, ends: Any, ends_start: Any) -> Any:
    """Compare eight codes with eight low ends and, behind these in `ends`, eight high ends.

    In the answer bit i is set if code i is outside; bit i + 8 if it is one of the two ends, so that it does
    not decide. A high end of 65535 is no end: such a row does not constrain the lane.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, word = ir.IntType(8), ir.IntType(64)

        def load(place: int, start: Any) -> Any:
            array_type, array = signature.args[place], arguments[place]
            return builder.load(_pointer(context, builder, array_type, array, start, _CODES), align=2)

        def mask(flags: Any) -> Any:
            return builder.zext(builder.bitcast(flags, byte), word)

        code, low = load(0, arguments[1]), load(2, arguments[3])
        high = load(2, builder.add(arguments[3], ir.Constant(word, 8)))
        below = builder.icmp_unsigned("<", code, low)
        above = builder.icmp_unsigned(">", code, high)
        at_low = builder.icmp_unsigned("==", code, low)
        at_high = builder.icmp_unsigned("==", code, high)
        is_end = builder.icmp_unsigned("!=", high, ir.Constant(_CODES, [65535] * 8))
        at_end = builder.and_(builder.or_(at_low, at_high), is_end)
        outside = mask(builder.or_(below, above))
        return builder.or_(outside, builder.shl(mask(at_end), ir.Constant(word, 8)))

    return types.int64(codes, types.int64, ends, types.int64), build


@intrinsic
def fetch_line(_context: Any, array: Any, start: Any) -> Any:
    """Prefetch the cache line of an element, without waiting for it.

    It goes to the second-level cache: what one event needs of many tiles is more than the first level
    holds.
    """

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], *arguments)
        number = ir.IntType(32)
        address = builder.bitcast(pointer, ir.IntType(8).as_pointer())
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
        )
        builder.call(prefetch, [address, number(0), number(2), number(1)])  # to read, second level, data
        return context.get_dummy_value()

    return types.void(array, types.int64), build
