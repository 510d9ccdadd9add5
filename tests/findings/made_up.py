"""Recordings whose numbers are made up: nothing is trained, so what happens together with what is known exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from endoscope.schema.recording import Key, StepRecord
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.store.writer import TrialWriter

UNITS = 4


def write(
    root: Path,
    norms: np.ndarray,
    *,
    trial: str = "made-up",
    inputs: np.ndarray | None = None,
    losses: np.ndarray | None = None,
    types: Sequence[str] = (),
    categories: Sequence[Sequence[str]] = (),
    metrics: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """`norms` are those of every sample, [nodes, steps, samples]; nodes make a chain n0 ─► n1 ─► … `losses` are of
    every sample, [steps, samples]; so are `inputs` and `categories`. Of each step: `types` and `metrics`."""
    if inputs is not None:
        norms = np.concatenate([inputs[None], norms])
    if losses is not None:
        norms = np.concatenate([norms, losses[None]])
    tensors, steps, samples = norms.shape
    names = [f"n{number}" for number in range(tensors)]
    kinds = ["computed"] * tensors
    if inputs is not None:
        names, kinds = ["input", *names[:-1]], ["input", *kinds[:-1]]
    if losses is not None:
        names[-1], kinds[-1] = "loss_of_samples", "loss"
    writer = TrialWriter.create(root, trial, config={})
    keys = np.array([writer.key_id(_key(n, k, samples)) for n, k in zip(names, kinds, strict=True)], np.int32)
    graph = {"hash": "chain", "nodes": [_node(n, k, samples) for n, k in zip(names, kinds, strict=True)]}
    graph["edges"] = [[number, number + 1, ["0"]] for number in range(tensors - 1)]
    for step in range(steps):
        writer.write_step(
            StepRecord(
                number=step, type=types[step] if len(types) else "", time=float(step), why="", graph_hash="chain",
                graph=graph, keys=keys, measured=_measured(norms[:, step]), raw_samples=[],
                categories=list(categories[step]) if len(categories) else [],
                metrics={name: float(values[step]) for name, values in (metrics or {}).items()},
            )
        )  # fmt: skip
    writer.close()
    return Path(writer.path)


def _key(node: str, kind: str, samples: int) -> Key:
    shape = (samples,) if kind == "loss" else (samples, UNITS)
    return Key(node, kind=kind, shape=shape, batch_dim=0, module="" if kind == "loss" else node)


def _node(node: str, kind: str, samples: int) -> dict[str, Any]:
    return {"node": node, "role": "", "pass": 1, "kind": kind, "module": node, "source": "model.py:1",
            "type": f"made_{node}", "modules": [node], "shape": [samples, UNITS]}  # fmt: skip


def _measured(norms: np.ndarray) -> Any:
    tensors, samples = norms.shape
    size = np.sqrt((norms**2).mean(axis=1))
    empty = {"nans", "infs", "neg_infs", "zeros"}
    whole = {n: np.full(tensors, 0 if n in empty else samples * UNITS) if n in COUNTS else size for n in WHOLE}
    flat = norms.ravel().astype(np.float32)
    return SimpleNamespace(
        whole=whole,
        hist_first=np.full(tensors, 128, np.int16),
        hist_values=np.ones(tensors, np.uint32),
        hist_offsets=np.arange(tensors + 1, dtype=np.int32),
        sample_request=np.repeat(np.arange(tensors, dtype=np.int32), samples),
        sample_index=np.tile(np.arange(samples, dtype=np.int32), tensors),
        samples={name: np.zeros_like(flat) if name in empty else flat for name in SAMPLE},
        unit_shape=[()] * tensors,
        unit_offsets=np.zeros(tensors + 1, np.int32),
        units={name: np.empty(0, np.float32) for name in UNIT},
        gaps=[],
    )
