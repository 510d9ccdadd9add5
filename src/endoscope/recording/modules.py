"""The tree of modules of the watched models, as plain data for the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch.nn.parameter import is_lazy

from endoscope.recording.steps.watch import Watch


def module_tree(watches: Iterable[Watch]) -> dict[str, Any]:
    """Address -> class, parameters and children. A shared module stands where it is first found."""
    modules: list[dict[str, Any]] = []
    for watch in watches:
        for name, module in watch.module.named_modules():
            address = watch.prefix + name if name else watch.name
            prefix = f"{address}." if address else ""
            own = [
                {
                    "name": prefix + key,
                    "shape": None if is_lazy(p) else list(p.shape),
                    "dtype": str(p.dtype).removeprefix("torch."),
                    "trainable": bool(p.requires_grad),
                }
                for key, p in module.named_parameters(recurse=False)
            ]
            parameters = [p for p in module.parameters() if not is_lazy(p)]
            modules.append(
                {
                    "address": address,
                    "type": type(module).__name__,
                    "children": [prefix + key for key, _ in module.named_children()],
                    "parameters": sum(p.numel() for p in parameters),
                    "trainable": sum(p.numel() for p in parameters if p.requires_grad),
                    "own": own,
                    "settings": module.extra_repr(),
                }
            )
    return {"modules": modules}
