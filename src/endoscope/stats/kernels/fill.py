"""Numbers of any type and from any place, as float32 or float64 in one row.

A sample that is one dense piece of float32 memory is read where it is. All others come through here.
"""

from __future__ import annotations

import math

import numpy as np

from endoscope.stats import layout as at
from endoscope.stats.kernels.machine import (
    AHEAD,
    LINE,
    fewer,
    float_of_bits,
    get_f32,
    get_f64,
    get_i16,
    get_i32,
    get_i64,
    get_u8,
    get_u16,
    get_u32,
    get_u64,
    kernel,
    prefetch,
    set_f32,
    set_f64,
)

BLOCK = 256  # numbers that are fetched together


@kernel("i8(i8)")
def item_size(code: int) -> int:
    """Bytes of one element."""
    if code == at.BYTE:
        return 1
    if code == at.BFLOAT16 or code == at.FLOAT16 or code == at.INT16 or code == at.UINT16:
        return 2
    if code == at.FLOAT32 or code == at.COMPLEX32 or code == at.INT32 or code == at.UINT32:
        return 4
    return 16 if code == at.COMPLEX128 else 8


@kernel("f8(f8, f8)")
def _length(real: float, imaginary: float) -> float:
    """The magnitude of a complex number, without overflow on the way; infinite as soon as one part is."""
    a, b = abs(real), abs(imaginary)
    if a == np.inf or b == np.inf:
        return np.inf
    if a < b:
        a, b = b, a
    if a == 0.0 or a != a or b != b:
        return a + b
    ratio = b / a
    return a * math.sqrt(1.0 + ratio * ratio)


@kernel("void(i8, i8, i8, i8, i8)")
def _convert_wide(code: int, source: int, stride: int, count: int, target: int) -> None:
    if code == at.FLOAT64:
        for i in range(count):
            set_f64(target, i, get_f64(source, i * stride))
    elif code == at.INT32:
        for i in range(count):
            set_f64(target, i, np.float64(get_i32(source, i * stride)))
    elif code == at.UINT32:
        for i in range(count):
            set_f64(target, i, np.float64(get_u32(source, i * stride)))
    elif code == at.INT64:
        for i in range(count):
            set_f64(target, i, np.float64(get_i64(source, i * stride)))
    elif code == at.UINT64:
        for i in range(count):
            set_f64(target, i, np.float64(get_u64(source, i * stride)))
    elif code == at.COMPLEX128:
        for i in range(count):
            set_f64(target, i, _length(get_f64(source, 2 * i * stride), get_f64(source, 2 * i * stride + 1)))


@kernel("f4(u2)")
def _from_half(bits: int) -> float:
    """A 16-bit float: move exponent and mantissa into place and correct the exponent by a multiplication,
    which also makes subnormal numbers right."""
    magnitude = np.uint32(bits & np.uint16(0x7FFF)) << np.uint32(13)
    sign = np.uint32(bits & np.uint16(0x8000)) << np.uint32(16)
    if magnitude >= np.uint32(0x0F800000):  # NaN or Inf
        return float_of_bits(magnitude | np.uint32(0x7F800000) | sign)
    value = float_of_bits(magnitude) * np.float32(2.0**112)
    return -value if sign else value


@kernel("void(i8, i8, i8, i8, i8, i8)")
def _convert(code: int, source: int, stride: int, count: int, target: int, lookup: int) -> None:
    """Copy elements that are a stride apart, as float32 or float64, next to each other."""
    if code >= at.FIRST_WIDE:
        _convert_wide(code, source, stride, count, target)
    elif code == at.FLOAT32:
        if stride == 1:
            for i in range(count):
                set_f32(target, i, get_f32(source, i))
        else:
            for i in range(count):
                set_f32(target, i, get_f32(source, i * stride))
    elif code == at.BFLOAT16:
        for i in range(count):
            set_f32(target, i, float_of_bits(np.uint32(get_u16(source, i * stride)) << np.uint32(16)))
    elif code == at.FLOAT16:
        for i in range(count):
            set_f32(target, i, _from_half(get_u16(source, i * stride)))
    elif code == at.BYTE:
        for i in range(count):
            set_f32(target, i, get_f32(lookup, np.int64(get_u8(source, i * stride))))
    elif code == at.INT16:
        for i in range(count):
            set_f32(target, i, np.float32(get_i16(source, i * stride)))
    elif code == at.UINT16:
        for i in range(count):
            set_f32(target, i, np.float32(get_u16(source, i * stride)))
    elif code == at.COMPLEX64:
        for i in range(count):
            real, imaginary = get_f32(source, 2 * i * stride), get_f32(source, 2 * i * stride + 1)
            set_f32(target, i, np.float32(_length(np.float64(real), np.float64(imaginary))))
    elif code == at.COMPLEX32:
        for i in range(count):
            real = _from_half(get_u16(source, 2 * i * stride))
            imaginary = _from_half(get_u16(source, 2 * i * stride + 1))
            set_f32(target, i, np.float32(_length(np.float64(real), np.float64(imaginary))))


@kernel("void(i8, i8, i8, i8, i8, i8)")
def _gather(job: int, request: int, source: int, start: int, length: int, target: int) -> None:
    """Copy elements start .. start + length of a sample, in the order of its dimensions."""
    code, dims = get_i64(request, at.CODE), get_i64(request, at.DIMS)
    lookup = get_i64(request, at.LOOKUP)
    table = get_i64(job, at.DIMENSIONS) + 16 * get_i64(request, at.DIMS_AT)  # size, stride, size, stride, …
    inner_size, inner_stride = get_i64(table, 2 * dims - 2), get_i64(table, 2 * dims - 1)
    target_size = 8 if code >= at.FIRST_WIDE else 4
    done = 0
    while done < length:
        position = start + done
        inner = position % inner_size
        offset = inner * inner_stride
        position //= inner_size
        for dim in range(dims - 2, -1, -1):
            size = get_i64(table, 2 * dim)
            offset += (position % size) * get_i64(table, 2 * dim + 1)
            position //= size
        count = fewer(inner_size - inner, length - done)
        place = source + item_size(code) * offset
        _convert(code, place, inner_stride, count, target + target_size * done, lookup)
        done += count


@kernel("void(i8, i8, i8, i8)")
def _subtract_block(source: int, other: int, count: int, target: int) -> None:
    for i in range(count):
        set_f32(target, i, get_f32(source, i) - get_f32(other, i))


@kernel("void(i8, i8, i8, i8)")
def _subtract(source: int, other: int, count: int, target: int) -> None:
    for start in range(0, count, BLOCK):
        for line in range(0, 4 * BLOCK, LINE):
            prefetch(source, 4 * start + line + AHEAD)
            prefetch(other, 4 * start + line + AHEAD)
        _subtract_block(source + 4 * start, other + 4 * start, fewer(BLOCK, count - start), target + 4 * start)


@kernel("i8(i8, i8, i8, i8, i8, i8)")
def numbers_at(job: int, request: int, sample: int, start: int, length: int, scratch: int) -> int:
    """The address of some numbers of a sample, as float32 or float64; they are copied only if they must be."""
    code, number = get_i64(request, at.CODE), get_i64(request, at.NUMBER)
    source = get_i64(get_i64(job, at.ADDRESSES), number)
    source += item_size(code) * sample * get_i64(request, at.SAMPLE_STRIDE)
    dims = get_i64(request, at.DIMS)
    if dims > 0:
        _gather(job, request, source, start, length, scratch)
        return scratch
    source += start * item_size(code)
    subtracted = get_i64(get_i64(job, at.MINUS), number)
    if subtracted != 0:
        _subtract(source, subtracted + 4 * start, length, scratch)
        return scratch
    if code == at.FLOAT32 or code == at.FLOAT64:
        return source
    _convert(code, source, 1, length, scratch, get_i64(request, at.LOOKUP))
    return scratch
