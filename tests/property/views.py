"""Steps that make views, each with the numpy twin of what it does to addresses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tests.property.program import AddressMap, Rule, Scene, Step

#: Types whose every bit pattern is a number, so that memory may be looked at through any of them.
DTYPES = (torch.float32, torch.int32, torch.int16, torch.uint8, torch.float64, torch.complex64)


def _view(index: int, text: str, type_: str, call: Callable[[Tensor], Any], moves: Any, results: int = 1) -> Step:
    def many(addresses: np.ndarray, size: int) -> list[np.ndarray]:
        moved = moves(addresses, size)
        return moved if isinstance(moved, list) else [moved]

    return Step(text.replace("{}", f"v{index}"), type_, lambda v: call(v[index]), (index,), moves=many, results=results)


def _same(addresses: np.ndarray, _: int) -> np.ndarray:
    return addresses


def _deep(least: int) -> Callable[[Tensor], bool]:
    return lambda t: t.dim() >= least and 0 not in t.shape


def _dim(scene: Scene, tensor: Tensor) -> int:
    return scene.choices.number(0, tensor.dim() - 1)


def basic_index(scene: Scene) -> Step | None:
    """Integers, slices with steps, None and Ellipsis."""
    index = scene.tensor(_deep(1))
    if index is None:
        return None
    key, shown = random_key(scene, scene.variables[index])
    return _view(index, "{}" + f"[{shown}]", "getitem", lambda t: t[key], lambda a, _: a[key])


def random_key(scene: Scene, tensor: Tensor) -> tuple[Any, str]:
    """A basic index for one dimension of the tensor, and how it is written."""
    dim = _dim(scene, tensor)
    length, number = tensor.shape[dim], scene.choices.number
    how = number(0, 4)
    if how == 0:
        item: Any = number(-length, length - 1)
        shown = str(item)
    elif how == 1:
        item = slice(number(0, length - 1), None, number(1, 3))
        shown = f"{item.start}::{item.step}"
    elif how == 2:
        start = number(0, length - 1)
        item = slice(start, start + number(0, 2))  # may be empty
        shown = f"{item.start}:{item.stop}"
    elif how == 3:
        return (..., None), "..., None"
    else:
        item = slice(None, -1)
        shown = ":-1"
    return (*[slice(None)] * dim, item), ":, " * dim + shown


def turned(scene: Scene) -> Step | None:
    index = scene.tensor(_deep(2))
    if index is None:
        return None
    tensor = scene.variables[index]
    a, b = _dim(scene, tensor), _dim(scene, tensor)
    order = tuple(np.roll(range(tensor.dim()), 1 + a).tolist())
    options = [
        _view(index, "{}" + f".transpose({a}, {b})", "transpose", lambda t: t.transpose(a, b),
              lambda x, _: x.swapaxes(a, b)),
        _view(index, "{}" + f".permute{order}", "permute", lambda t: t.permute(order), lambda x, _: x.transpose(order)),
        _view(index, "{}" + f".movedim({a}, {b})", "movedim", lambda t: t.movedim(a, b),
              lambda x, _: np.moveaxis(x, a, b)),
        _view(index, "{}.mT", "mT", lambda t: t.mT, lambda x, _: x.swapaxes(-1, -2)),
    ]  # fmt: skip
    return scene.choices.one_of(options)


def another_shape(scene: Scene) -> Step | None:
    index = scene.tensor(_deep(0))
    if index is None:
        return None
    tensor = scene.variables[index]
    lead = (2, *tensor.shape)
    options = [
        _view(index, "{}.view(-1)", "view", lambda t: t.view(-1), lambda x, _: x.reshape(-1)),
        _view(index, "{}.reshape(2, -1)", "reshape", lambda t: t.reshape(2, -1), lambda x, _: x.reshape(2, -1)),
        _view(index, "{}.flatten()", "flatten", lambda t: t.flatten(), lambda x, _: x.reshape(-1)),
        _view(
            index, "{}" + f".expand{lead}", "expand", lambda t: t.expand(lead), lambda x, _: np.broadcast_to(x, lead)
        ),
        _view(index, "{}.unsqueeze(0)", "unsqueeze", lambda t: t.unsqueeze(0), lambda x, _: x[None]),
        _view(index, "{}.squeeze()", "squeeze", lambda t: t.squeeze(), lambda x, _: x.squeeze()),
    ]
    return scene.choices.one_of(options)


def part(scene: Scene) -> Step | None:
    index = scene.tensor(_deep(1))
    if index is None:
        return None
    tensor = scene.variables[index]
    dim = _dim(scene, tensor)
    length = tensor.shape[dim]
    start = scene.choices.number(0, length - 1)
    count = scene.choices.number(1, length - start)
    options = [
        _view(index, "{}" + f".narrow({dim}, {start}, {count})", "narrow", lambda t: t.narrow(dim, start, count),
              lambda x, _: x.take(range(start, start + count), dim)),
        _view(index, "{}" + f".select({dim}, {start})", "select", lambda t: t.select(dim, start),
              lambda x, _: x.take(start, dim)),
        _view(index, "{}" + f".unfold({dim}, {count}, 1)", "unfold", lambda t: t.unfold(dim, count, 1),
              lambda x, _: np.lib.stride_tricks.sliding_window_view(x, count, dim)),
    ]  # fmt: skip
    if tensor.dim() >= 2:
        options.append(_view(index, "{}.diagonal()", "diagonal", lambda t: t.diagonal(),
                             lambda x, _: x.diagonal(axis1=0, axis2=1)))  # fmt: skip
    if tensor.is_contiguous():
        options.append(_jump(index, tensor, scene))
    return scene.choices.one_of(options)


def _jump(index: int, tensor: Tensor, scene: Scene) -> Step:
    """`as_strided`, staying inside what the tensor itself shows."""
    step = scene.choices.number(1, max(1, tensor.numel() // 2))
    size = (tensor.numel() - 1) // step + 1
    text = f".as_strided(({size},), ({step},), v{index}.storage_offset())"
    return _view(
        index, "{}" + text, "as_strided", lambda t: t.as_strided((size,), (step,), t.storage_offset()),
        lambda x, _: x.reshape(-1)[::step],
    )  # fmt: skip


def several(scene: Scene) -> Step | None:
    index = scene.tensor(_deep(1))
    if index is None:
        return None
    tensor = scene.variables[index]
    dim = _dim(scene, tensor)
    length = tensor.shape[dim]
    halves = -(-length // 2)
    options = [
        _view(index, "{}" + f".unbind({dim})", "unbind", lambda t: t.unbind(dim),
              lambda x, _: [x.take(i, dim) for i in range(length)], length),
        _view(index, "{}" + f".chunk(2, {dim})", "chunk", lambda t: t.chunk(2, dim),
              lambda x, _: _pieces(x, dim, halves), -(-length // halves)),
        _view(index, "{}" + f".split(1, {dim})", "split", lambda t: t.split(1, dim),
              lambda x, _: _pieces(x, dim, 1), length),
    ]  # fmt: skip
    return scene.choices.one_of(options)


def _pieces(addresses: np.ndarray, dim: int, size: int) -> list[np.ndarray]:
    return [
        addresses.take(range(i, min(i + size, addresses.shape[dim])), dim) for i in range(0, addresses.shape[dim], size)
    ]


def another_object(scene: Scene) -> Step | None:
    """The same elements through another object; or, where torch has nothing to do, through the same."""
    index = scene.tensor()
    if index is None:
        return None
    dtype = scene.variables[index].dtype
    options = [
        _view(index, "{}.detach()", "detach", lambda t: t.detach(), _same),
        _view(index, "{}.data", "data", lambda t: t.data, _same),
        _view(index, "{}.contiguous()", "contiguous", lambda t: t.contiguous(), _same),
        _view(index, "{}" + f".to({dtype})", "to", lambda t: t.to(dtype), _same),
        _view(index, "{}.view_as({})", "view_as", lambda t: t.view_as(t), _same),
    ]
    return scene.choices.one_of(options)


def another_dtype(scene: Scene) -> Step | None:
    index = scene.tensor(lambda t: t.dtype in DTYPES and t.dim() > 0)
    if index is None:
        return None
    dtype = scene.choices.one_of(DTYPES)
    return _view(index, "{}" + f".view({dtype})", "view", lambda t: t.view(dtype), _resized(dtype.itemsize))


def _resized(new: int) -> Any:
    def moves(addresses: np.ndarray, old: int) -> np.ndarray:
        if new >= old:
            return addresses[..., :: new // old] if new > old else addresses
        pieces = addresses[..., None] + np.arange(0, old, new)
        return pieces.reshape(*addresses.shape[:-1], addresses.shape[-1] * (old // new))

    return moves


def half_of_complex(scene: Scene) -> Step | None:
    index = scene.tensor(torch.is_complex)
    if index is None:
        return None
    options = [
        _view(index, "{}.real", "real", lambda t: t.real, _same),
        _view(index, "{}.imag", "imag", lambda t: t.imag, lambda x, size: x + size // 2),
        _view(index, "{}.conj()", "conj", lambda t: t.conj(), _same),
        _view(index, "torch.view_as_real({})", "view_as_real", torch.view_as_real,
              lambda x, size: x[..., None] + np.array([0, size // 2])),
    ]  # fmt: skip
    return scene.choices.one_of(options)


VIEWS: tuple[Rule, ...] = (
    basic_index, basic_index, turned, another_shape, part, several, another_object, another_dtype, half_of_complex,
)  # fmt: skip

__all__ = ["VIEWS", "AddressMap", "random_key"]
