"""As many floats at a time as fit into a register, as values of compiled code.

LLVM vectorises simple loops by itself, but not one that also counts into a histogram, and not minima. So the
two loops that all the time is spent in are written with these. A machine with narrower registers than eight
floats gets several instructions for one of ours.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from endoscope.stats import layout as at
from endoscope.stats.kernels.machine import (
    ADDRESS,
    FLOAT,
    INDEX,
    INT32,
    INT64,
    bump,
    nothing,
    pointer,
    primitive,
)

LANES = 16 if llvm.get_host_cpu_features().get("avx512f") else 8
FINE_SHIFT = 15  # a fine bin of the histogram is sign, exponent and 8 bits of mantissa: the upper 17 bits
FINE_BINS = 1 << 17

_FLOATS = ir.VectorType(FLOAT, LANES)
_INTS = ir.VectorType(INT32, LANES)
_PAIRS = ir.VectorType(INT64, LANES // 2)

_MAY_REORDER = ("reassoc", "contract")
# Whoever asks for a minimum looks at the result only after having made sure that there was no NaN.
_NO_NAN = ("nnan", "nsz")


class VectorType(types.Type):  # type: ignore[misc]
    def __init__(self, name: str, machine_type: Any) -> None:
        self.machine_type = machine_type
        super().__init__(name)


@register_model(VectorType)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: VectorType) -> None:
        super().__init__(manager, vector, vector.machine_type)


Floats = VectorType("Floats", _FLOATS)
Ints = VectorType("Ints", _INTS)


def _constant(of: Any, number: Any) -> Any:
    return ir.Constant(of, [number] * LANES)


def _call(builder: Any, name: str, arguments: list[Any], result: Any = None, flags: tuple[str, ...] = ()) -> Any:
    """Call an intrinsic function of LLVM on vectors; its full name carries the type of the last argument."""
    suffix = {"float": "f32", "i32": "i32"}[str(arguments[-1].type.element)]
    full = f"{name}.v{LANES}{suffix}"
    kind = ir.FunctionType(result or arguments[0].type, [argument.type for argument in arguments])
    function = builder.module.globals.get(full) or ir.Function(builder.module, kind, full)
    return builder.call(function, arguments, fastmath=flags)


def _spread(of: Any) -> Callable[[Any, Any], Any]:
    def build(builder: Any, number: Any) -> Any:
        first = builder.insert_element(ir.Constant(of, ir.Undefined), number, INT32(0))
        return builder.shuffle_vector(first, first, _constant(_INTS, 0))

    return build


def _load(builder: Any, address: Any, index: Any) -> Any:
    place = pointer(builder, address, index, FLOAT)
    return builder.load(builder.bitcast(place, _FLOATS.as_pointer()), align=4)


def _store_past_cache(builder: Any, address: Any, index: Any, values: Any) -> Any:
    place = builder.bitcast(pointer(builder, address, index, FLOAT), _FLOATS.as_pointer())
    store = builder.store(values, place, align=4 * LANES)
    store.set_metadata("nontemporal", builder.module.add_metadata([INT32(1)]))
    return nothing()


def _is_zero(builder: Any, values: Any) -> Any:
    return builder.fcmp_ordered("==", values, _constant(_FLOATS, 0.0))


def _any(builder: Any, lanes: Any) -> Any:
    return builder.icmp_unsigned("!=", builder.bitcast(lanes, ir.IntType(LANES)), ir.IntType(LANES)(0))


def _any_not_below(builder: Any, values: Any, limits: Any) -> Any:
    """A NaN is not below anything."""
    return _any(builder, builder.fcmp_unordered(">=", values, limits))


def _any_outside(builder: Any, values: Any, low: float, high: float) -> Any:
    """Whether one is not at least `low` and below `high`; both are positive, and so are all numbers that are not NaN.

    Such numbers compare like integers, and of integers it is one comparison: the distance wraps around below `low`.
    """
    distance = builder.sub(builder.bitcast(values, _INTS), _constant(_INTS, _bits(low)))
    return _any(builder, builder.icmp_unsigned(">=", distance, _constant(_INTS, _bits(high) - _bits(low))))


def _bits(number: float) -> int:
    found: int = struct.unpack("<i", struct.pack("<f", number))[0]
    return found


def any_outside(low: float, high: float) -> Any:
    """The primitive for these two bounds."""
    return primitive(types.boolean, (Floats,), lambda builder, values: _any_outside(builder, values, low, high))


def _any_above(builder: Any, values: Any, limits: Any) -> Any:
    return _any(builder, builder.fcmp_ordered(">", values, limits))


def _count_zeros(builder: Any, counts: Any, values: Any) -> Any:
    return builder.sub(counts, builder.sext(_is_zero(builder, values), _INTS))


def _smaller(builder: Any, a: Any, b: Any) -> Any:
    return _call(builder, "llvm.minnum", [a, b], flags=_NO_NAN)


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return _call(builder, "llvm.maxnum", [a, b], flags=_NO_NAN)


def _reduce(name: str, number: Any, flags: tuple[str, ...]) -> Callable[[Any, Any], Any]:
    return lambda builder, values: _call(builder, f"llvm.vector.reduce.{name}", [values], number, flags)


def _total(builder: Any, values: Any) -> Any:
    start = ir.Constant(FLOAT, 0.0)
    return _call(builder, "llvm.vector.reduce.fadd", [start, values], FLOAT, _MAY_REORDER)


def _tally(builder: Any, table: Any, address: Any, index: Any) -> Any:
    """Count floats into their fine bins: two at a time from one load, which is fewer instructions."""
    counters = builder.inttoptr(table, INT32.as_pointer())
    place = builder.bitcast(pointer(builder, address, index, FLOAT), INT64.as_pointer())
    for pair in range(LANES // 2):
        both = builder.load(builder.gep(place, [INT32(pair)]), align=4)
        low = builder.and_(both, INT64(0xFFFFFFFF))
        bump(builder, counters, builder.lshr(low, INT64(FINE_SHIFT)))
        bump(builder, counters, builder.lshr(both, INT64(32 + FINE_SHIFT)))
    return nothing()


def _tally_zeros_apart(builder: Any, table: Any, values: Any) -> Any:
    """The same, but each lane has a counter of its own for zeros, behind the fine bins.

    After a ReLU every second number is zero. Counting them all in one place would make each addition wait
    for the one before.
    """
    counters = builder.inttoptr(table, INT32.as_pointer())
    keys = builder.lshr(builder.bitcast(values, _INTS), _constant(_INTS, FINE_SHIFT))
    apart = ir.Constant(_INTS, [FINE_BINS + lane for lane in range(LANES)])
    pairs = builder.bitcast(builder.select(_is_zero(builder, values), apart, keys), _PAIRS)
    for pair in range(LANES // 2):
        both = builder.extract_element(pairs, INT32(pair))
        bump(builder, counters, builder.and_(both, INT64(0xFFFFFFFF)))
        bump(builder, counters, builder.lshr(both, INT64(32)))
    return nothing()


def _place(builder: Any, address: Any, column: Any, table: int, of: Any) -> Any:
    """Some neighbouring columns of one of the tables that lie behind each other."""
    first = builder.add(column, INT64(table * at.MOST_COLUMNS))
    return builder.bitcast(pointer(builder, address, first, of.element), of.as_pointer())


def _put_columns(builder: Any, latest: Any, column: Any, mean: Any, around: Any) -> Any:
    """Begin with eight numbers of each of some neighbouring columns: their mean, and the squares around it."""
    for table, values in enumerate((mean, _constant(_FLOATS, 0.0), around)):
        builder.store(values, _place(builder, latest, column, table, _FLOATS), align=4)
    return nothing()


def _add_columns(builder: Any, latest: Any, column: Any, mean: Any, around: Any) -> Any:
    """Add eight numbers of each of some neighbouring columns: squares are taken around the mean of the first eight."""
    shift, sums, squares = (_place(builder, latest, column, table, _FLOATS) for table in range(3))
    offset = builder.fsub(mean, builder.load(shift, align=4))
    eightfold = builder.fmul(offset, _constant(_FLOATS, 8.0))
    more = _call(builder, "llvm.fma", [eightfold, offset, around])
    builder.store(builder.fadd(builder.load(sums, align=4), offset), sums, align=4)
    builder.store(builder.fadd(builder.load(squares, align=4), more), squares, align=4)
    return nothing()


def _raise_peaks(builder: Any, largest: Any, column: Any, peaks: Any) -> Any:
    """Magnitudes compare like integers, and integer units are idle here."""
    place = _place(builder, largest, column, 0, _INTS)
    builder.store(_call(builder, "llvm.smax", [builder.load(place, align=4), peaks]), place, align=4)
    return nothing()


all_equal = primitive(Floats, (types.float32,), _spread(_FLOATS))
no_counts = primitive(Ints, (types.int32,), _spread(_INTS))
load = primitive(Floats, (ADDRESS, INDEX), _load)
store_past_cache = primitive(types.int32, (ADDRESS, INDEX, Floats), _store_past_cache)  # to an aligned address
add = primitive(Floats, (Floats, Floats), lambda b, x, y: b.fadd(x, y, flags=_MAY_REORDER))
join = primitive(Floats, (Floats, Floats), lambda b, x, y: b.fadd(x, y))  # two chains that are to stay two
subtract = primitive(Floats, (Floats, Floats), lambda b, x, y: b.fsub(x, y))
add_square = primitive(Floats, (Floats, Floats), lambda b, total, x: _call(b, "llvm.fma", [x, x, total]))
magnitude = primitive(Floats, (Floats,), lambda b, x: _call(b, "llvm.fabs", [x]))
smaller = primitive(Floats, (Floats, Floats), _smaller)
larger = primitive(Floats, (Floats, Floats), _larger)
count_zeros = primitive(Ints, (Ints, Floats), _count_zeros)

total = primitive(types.float32, (Floats,), _total)
lowest = primitive(types.float32, (Floats,), _reduce("fmin", FLOAT, _NO_NAN))
highest = primitive(types.float32, (Floats,), _reduce("fmax", FLOAT, _NO_NAN))
total_count = primitive(types.int32, (Ints,), _reduce("add", INT32, ()))

tally = primitive(types.int32, (ADDRESS, ADDRESS, INDEX), _tally)
tally_zeros_apart = primitive(types.int32, (ADDRESS, Floats), _tally_zeros_apart)
multiply = primitive(Floats, (Floats, Floats), lambda b, x, y: b.fmul(x, y))
square = primitive(Floats, (Floats,), lambda b, x: b.fmul(x, x))
bits = primitive(Ints, (Floats,), lambda b, x: b.bitcast(x, _INTS))
higher = primitive(Ints, (Ints, Ints), lambda b, x, y: _call(b, "llvm.smax", [x, y]))
any_zero = primitive(types.boolean, (Floats,), lambda b, x: _any(b, _is_zero(b, x)))
any_not_below = primitive(types.boolean, (Floats, Floats), _any_not_below)
any_above = primitive(types.boolean, (Floats, Floats), _any_above)
put_columns = primitive(types.int32, (ADDRESS, INDEX, Floats, Floats), _put_columns)
add_columns = primitive(types.int32, (ADDRESS, INDEX, Floats, Floats), _add_columns)
raise_peaks = primitive(types.int32, (ADDRESS, INDEX, Ints), _raise_peaks)
