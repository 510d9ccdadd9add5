"""The CRC-32 of zlib, sixteen bytes at a time: a message is folded until sixteen bytes are left that have the same one.

Bits are polynomials modulo 2; moving a part of a message by n bits is multiplying it by x^n modulo the polynomial of
the CRC. Processors can multiply without carry, so four parts of sixteen bytes are moved past the next 64 bytes and
added to them (exclusive or), again and again.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types

from endoscope.stats.kernels.machine import ADDRESS, INT64, LINE, get_i64, kernel, nothing, primitive, set_i64
from endoscope.stats.kernels.vectors import VectorType

CAN_MULTIPLY = bool(llvm.get_host_cpu_features().get("pclmul"))
# x^(n+32) and x^(n-32) modulo the polynomial, bits in reverse, for n = 512 and n = 128.
PAST_64_BYTES = (0x0154442BD4, 0x01C6E41596)
PAST_16_BYTES = (0x01751997D0, 0x00CCAA009E)

_PAIR = ir.VectorType(INT64, 2)
Pair = VectorType("Pair", _PAIR)


def _pair(builder: Any, low: Any, high: Any) -> Any:
    first = builder.insert_element(ir.Constant(_PAIR, ir.Undefined), low, ir.IntType(32)(0))
    return builder.insert_element(first, high, ir.IntType(32)(1))


def _load(builder: Any, address: Any) -> Any:
    return builder.load(builder.inttoptr(address, _PAIR.as_pointer()), align=1)


def _store(builder: Any, address: Any, value: Any) -> Any:
    builder.store(value, builder.inttoptr(address, _PAIR.as_pointer()), align=1)
    return nothing()


def _fold(builder: Any, part: Any, by: Any, onto: Any) -> Any:
    """Move a part, and add it to what is there."""
    byte = ir.IntType(8)
    name, kind = "llvm.x86.pclmulqdq", ir.FunctionType(_PAIR, [_PAIR, _PAIR, byte])
    multiply = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    low, high = (builder.call(multiply, [part, by, byte(halves)]) for halves in (0x00, 0x11))
    return builder.xor(builder.xor(low, high), onto)


pair = primitive(Pair, (types.int64, types.int64), _pair)
load = primitive(Pair, (ADDRESS,), _load)
store = primitive(types.int32, (ADDRESS, Pair), _store)
add = primitive(Pair, (Pair, Pair), lambda builder, a, b: builder.xor(a, b))
# Elsewhere it is never called, but has to be compiled.
fold = primitive(Pair, (Pair, Pair, Pair), _fold if CAN_MULTIPLY else lambda builder, part, by, onto: onto)


@kernel("void(i8, i8, i8)")
def _fold_all(address: int, length: int, result: int) -> None:
    """From a message of whole lines to sixteen bytes at `result`, where the CRC of what came before is to be found."""
    by = pair(PAST_64_BYTES[0], PAST_64_BYTES[1])
    a = add(load(address), pair(get_i64(result, 0), 0))
    b, c, d = load(address + 16), load(address + 32), load(address + 48)
    for place in range(address + LINE, address + length, LINE):
        a, b = fold(a, by, load(place)), fold(b, by, load(place + 16))
        c, d = fold(c, by, load(place + 32)), fold(d, by, load(place + 48))
    by = pair(PAST_16_BYTES[0], PAST_16_BYTES[1])
    store(result, fold(fold(fold(a, by, b), by, c), by, d))


@kernel("void(i8)")
def fold_message(table: int) -> None:
    """A table: where the message is, its length, a multiple of 64, and where two numbers are: the CRC before, any."""
    if CAN_MULTIPLY:
        _fold_all(get_i64(table, 0), get_i64(table, 1), get_i64(table, 2))
    else:
        set_i64(table, 1, 0)  # nothing was folded
