"""Numbers of steps: a reference is kept when one is reported, and all are written together, now and then.

    metric(name, loss) ─► a copy of one number, on its device ─► the writer thread, a few times a second ─► one batch

A number that lives on a device is not waited for in the training thread.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from endoscope.errors import BadArgument

_EMPTY = "a metric is a number, or one number for each sample; this one is empty."


def held_number(value: Any) -> Any:
    """The value as it is now: a float, an array with one element per sample, or a tensor that nobody writes into."""
    if value.__class__ is float:
        return value
    if _is_tensor(value):
        import torch

        from endoscope.recording.hooks.modes import quiet

        with quiet():
            value = _at_hand(value)
            if value.numel() == 0:
                raise BadArgument(_EMPTY)
            if value.is_complex():
                raise BadArgument("a metric is a real number; this one is complex. Report its magnitude: value.abs().")
            if value.is_cpu and value.numel() == 1:  # nothing to wait for
                return float(value.item())
            with torch.no_grad():
                return value.detach().clone()
    number = plain_number(value)
    if isinstance(number, np.ndarray):
        if number.size == 0:
            raise BadArgument(_EMPTY)
        return number if number.size > 1 else float(number.item())
    return number


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")  # policies are asked without torch, too
    return torch is not None and isinstance(value, torch.Tensor)


def _at_hand(value: Any) -> Any:
    """To ask the other processes for their part would stop a training in which they do not ask, too."""
    from endoscope.capture.record.parts import here, is_distributed

    if is_distributed(value) and not all(placement.is_replicate() for placement in value.placements):
        raise BadArgument("this metric is divided among processes. Report value.full_tensor() in each of them.")
    return here(value)


def plain_number(value: Any) -> Any:
    """A float; of several numbers a numpy array, one element per sample."""
    if _is_tensor(value):
        import torch

        from endoscope.recording.hooks.modes import quiet

        with quiet(), torch.no_grad():
            value = _at_hand(value).detach()
            if value.numel() == 1:
                return float(value.item())
            value = value.to(torch.float64).cpu().numpy()
    if getattr(value, "shape", ()) or isinstance(value, (list, tuple)):
        return np.array(value, dtype=np.float64)  # a copy
    return float(value)


def plain_numbers(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {name: plain_number(value) for name, value in metrics.items()}


def means(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Of one number per sample, the mean."""
    return {name: value if value.__class__ is float else _mean(value) for name, value in metrics.items()}


def _mean(value: Any) -> float:
    number = plain_number(value)
    return float(np.mean(number)) if isinstance(number, np.ndarray) else number
