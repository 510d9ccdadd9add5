"""Tensors that are no plain piece of memory: what they consist of, and how they are put together again."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_COMPRESSED = {
    torch.sparse_csr: ("crow_indices", "col_indices"),
    torch.sparse_bsr: ("crow_indices", "col_indices"),
    torch.sparse_csc: ("ccol_indices", "row_indices"),
    torch.sparse_bsc: ("ccol_indices", "row_indices"),
}


def taken_apart(tensor: Tensor) -> tuple[dict[str, Any], list[Tensor]] | None:
    """What says how to put it together, and the plain tensors in it; None if it is plain, or of another kind."""
    if tensor.is_nested:
        return {"kind": "nested", "layout": str(tensor.layout)}, list(tensor.unbind())
    if tensor.layout is torch.sparse_coo and tensor.is_coalesced():
        return {"kind": "sparse", "size": list(tensor.shape)}, [tensor.indices(), tensor.values()]
    if tensor.layout in _COMPRESSED:
        names = _COMPRESSED[tensor.layout]
        told = {"kind": "compressed", "layout": str(tensor.layout), "size": list(tensor.shape)}
        return told, [*(getattr(tensor, name)() for name in names), tensor.values()]
    if tensor.is_quantized and tensor.qscheme() is torch.per_tensor_affine:
        scale, zero_point = tensor.q_scale(), tensor.q_zero_point()
        return {"kind": "quantised", "scale": scale, "zero_point": zero_point, "dtype": str(tensor.dtype)}, [
            tensor.dequantize()
        ]
    if tensor.device.type == "meta":
        return {"kind": "meta", "size": list(tensor.shape), "dtype": str(tensor.dtype)}, []
    return None


def put_together(told: dict[str, Any], parts: list[Tensor]) -> Tensor:
    """Raises ValueError, or what torch raises, if they do not fit."""

    def word(name: str) -> Any:
        return getattr(torch, str(told[name]).removeprefix("torch."))

    if told["kind"] == "nested":
        return torch.nested.nested_tensor(parts, layout=word("layout"))
    if told["kind"] == "sparse":
        indices, values = parts
        return torch.sparse_coo_tensor(indices, values, told["size"], is_coalesced=True, check_invariants=True)
    if told["kind"] == "compressed":
        outer, inner, values = parts
        size, layout = told["size"], word("layout")
        return torch.sparse_compressed_tensor(outer, inner, values, size, layout=layout, check_invariants=True)
    if told["kind"] == "quantised":
        return torch.quantize_per_tensor(parts[0], float(told["scale"]), int(told["zero_point"]), word("dtype"))
    if told["kind"] == "meta":
        return torch.empty(told["size"], dtype=word("dtype"), device="meta")
    raise ValueError(f"{told['kind']!r} is no kind of tensor")
