"""Random tensors: any shape up to five dimensions, any strides, any type, any kind of number."""

import math
import struct

import torch
from hypothesis import strategies as st

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
DTYPES = [*FLOATS, *INTEGERS, *COMPLEX, torch.bool]

SPECIAL = [
    math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 1.5, 2.0**-32, 2.0**32, -(2.0**32), 1e-40, -1e-45, 5e-324,
    1e30, -3e38, 1e300, -1e308, 1e-300, 65504.0, 6e-8, 0.1,
]  # fmt: skip


def is_wide(dtype: torch.dtype) -> bool:
    """Is it measured in double precision?"""
    return dtype in (torch.float64, torch.complex128, torch.int32, torch.int64, torch.uint32, torch.uint64)


@st.composite
def shapes(draw: st.DrawFn, most: int = 600) -> tuple[int, ...]:
    sizes = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3, 4, 5, 8, 9, 17]), max_size=5))
    while math.prod(sizes) > most:
        sizes[sizes.index(max(sizes))] = 2
    return tuple(sizes)


@st.composite
def values(draw: st.DrawFn, count: int, dtype: torch.dtype) -> torch.Tensor:
    """A flat tensor."""
    seed = draw(st.integers(0, 2**31))
    chance = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(count, generator=chance) > draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    if dtype in INTEGERS:
        limits = torch.iinfo(dtype)
        low, high = draw(st.sampled_from([(0, 2), (limits.min, limits.max), (max(limits.min, -100), 100)]))
        high = min(high, 2**63 - 1)
        return torch.randint(low, high, (count,), generator=chance, dtype=torch.int64).to(dtype)
    numbers = torch.randn(count, generator=chance, dtype=torch.float64)
    numbers = numbers * 10.0 ** draw(st.sampled_from([-30, -3, 0, 0, 0, 4])) + draw(st.sampled_from([0, 0, 1, -1000]))
    if draw(st.booleans()):
        numbers = numbers.relu()
    for _ in range(draw(st.integers(0, 4)) if count else 0):
        numbers[draw(st.integers(0, count - 1))] = draw(st.sampled_from(SPECIAL))
    if dtype in COMPLEX:
        return torch.complex(numbers, numbers.roll(1)).to(dtype)
    return numbers.to(dtype)


@st.composite
def tensors(draw: st.DrawFn, dtypes: list[torch.dtype] = DTYPES, most: int = 600) -> torch.Tensor:
    """A tensor, after up to three views of it."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(shapes(most))
    tensor = draw(values(math.prod(shape), dtype)).reshape(shape)
    for _ in range(draw(st.integers(0, 3))):
        tensor = draw(views(tensor, most))
    return tensor


@st.composite
def views(draw: st.DrawFn, tensor: torch.Tensor, most: int) -> torch.Tensor:
    how = draw(st.sampled_from(["permute", "slice", "unsqueeze", "expand", "select"]))
    if how == "permute":
        return tensor.permute(draw(st.permutations(range(tensor.dim()))))
    if how == "unsqueeze":
        return tensor.unsqueeze(draw(st.integers(0, tensor.dim()))) if tensor.dim() < 5 else tensor
    if tensor.dim() == 0:
        return tensor
    dim = draw(st.integers(0, tensor.dim() - 1))
    size = tensor.shape[dim]
    if how == "slice":
        cut = [slice(None)] * tensor.dim()
        cut[dim] = slice(draw(st.integers(0, 2)), None, draw(st.integers(1, 3)))
        return tensor[tuple(cut)]
    if how == "select" and size:
        return tensor.select(dim, draw(st.integers(0, size - 1)))
    if how == "expand" and size == 1 and 3 * tensor.numel() <= most:
        return tensor.expand(*tensor.shape[:dim], 3, *tensor.shape[dim + 1 :])
    return tensor


def as_float32(number: float) -> float:
    """Rounded to float32, as the tables of samples and units hold it."""
    try:
        return struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
