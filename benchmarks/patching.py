"""Activation patching of one prompt: the model, the task, and how it is done by hand.

For every layer and position, run the corrupt prompt with the output of that block at that position taken from the
clean prompt, and read the logits behind the last token. No library of ours or of a peer is needed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

LAYERS = 12
TOKENS = 12

#: layer, position -> logits behind the last token
Patch = Callable[[int, int], Tensor]


def language_model() -> Any:
    """GPT-2 small's shape with its head, and random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config()).eval()  # type: ignore[no-untyped-call]


def prompts() -> tuple[Tensor, Tensor]:
    """A clean and a corrupt one."""
    torch.manual_seed(1)
    clean, corrupt = torch.randint(0, 50257, (2, 1, TOKENS))
    return clean, corrupt


def sweep(patch: Patch, positions: list[int]) -> list[Tensor]:
    return [patch(layer, position) for layer in range(LAYERS) for position in positions]


def by_hand(model: Any) -> Patch:
    """With forward hooks of torch, as one would write it without any library."""
    clean, corrupt = prompts()
    saved: list[Tensor] = []
    blocks: nn.ModuleList = model.transformer.h
    handles = [block.register_forward_hook(lambda _, __, out: saved.append(_first(out))) for block in blocks]
    model(clean)
    for handle in handles:
        handle.remove()

    def patch(layer: int, position: int) -> Tensor:
        def put(_: Any, __: Any, out: Any) -> Any:
            changed = _first(out).clone()
            changed[:, position] = saved[layer][:, position]
            return (changed, *out[1:]) if isinstance(out, tuple) else changed

        handle = blocks[layer].register_forward_hook(put)
        try:
            logits: Tensor = model(corrupt).logits
            return logits[:, -1]
        finally:
            handle.remove()

    return patch


def _first(out: Any) -> Tensor:
    return out[0] if isinstance(out, tuple) else out  # type: ignore[no-any-return]


def largest_difference(found: list[Tensor], expected: list[Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True))
