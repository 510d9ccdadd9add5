"""Trials of several ranks that are made of whole tensors: each rank is given its parts, which are really measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from endoscope.schema.recording import Key, RawValues, StepRecord, TimesRecord
from endoscope.stats import Request, measure
from endoscope.store.joining import Member
from endoscope.store.writer import TrialWriter

DATA = {"names": ["data"], "shape": [2], "ranks": [0, 1]}
TWO_BY_TWO = {"names": ["dp", "tp"], "shape": [2, 2], "ranks": [0, 1, 2, 3]}


@dataclass
class Part:
    """What one rank has of a tensor."""

    key: Key
    tensor: torch.Tensor
    samples: list[int] | None = None  # kept raw, along dimension 0; None: all of it is kept
    keep: bool = True


@dataclass
class Step:
    """What one rank records at one step."""

    parts: Sequence[Part]
    type: str = "train"
    metrics: Mapping[str, float] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    categories: Sequence[str] = ()


def placed(over: Sequence[str], whole: Sequence[int] = (), parts: Any = (), mesh: int = 0) -> str:
    found: dict[str, Any] = {"mesh": mesh, "over": list(over)}
    if "shard" in over:
        found |= {"shape": list(whole), "parts": parts}
    return json.dumps(found)


def part(node: str, tensor: torch.Tensor, placement: str, **others: Any) -> Part:
    """A tensor as a rank has it; `others` are fields of its key, or `samples` and `keep`."""
    about = {name: others.pop(name) for name in ("samples", "keep") if name in others}
    key = Key(node, shape=tuple(tensor.shape), dtype=str(tensor.dtype)[6:], placement=placement, **others)
    return Part(key, tensor, **about)


def sharded(node: str, whole: torch.Tensor, dim: int, at: tuple[int, int], **others: Any) -> Part:
    """The part from at[0] to at[1] along one dimension, on a mesh of one dimension."""
    intervals = [[[0, size]] for size in whole.shape]
    intervals[dim] = [[at[0], at[1] - at[0]]] if at[1] > at[0] else []
    own = whole.narrow(dim, at[0], at[1] - at[0])
    return part(node, own, placed(["shard"], whole.shape, intervals), **others)


def write_rank(
    root: Path,
    rank: int,
    steps: Mapping[int, Step],
    meshes: Sequence[Any] = (DATA,),
    *,
    world: int = 0,
    trial: str = "job",
    times: Sequence[TimesRecord] = (),
) -> Path:
    """The folder of one rank; of one that is there already, that of another attempt."""
    member = Member(rank, world or _world(meshes), "made up", "here")
    writer = TrialWriter.create(root, trial, member=member)
    writer.write_modules({"modules": []})
    for one in times:
        writer.write_times(one)
    for number, step in steps.items():
        keys = [writer.key_id(one.key) for one in step.parts]
        raw = [RawValues(key, _raw(one), one.samples) for key, one in zip(keys, step.parts, strict=True) if one.keep]
        writer.write_step(
            StepRecord(
                number=number, type=step.type, time=1.7e9 + number, why="every step", graph_hash="g",
                graph=_graph(step),
                keys=np.array(keys, np.int32), measured=measure([Request(one.tensor, one.key.batch_dim if
                one.key.batch_dim >= 0 else None) for one in step.parts]), raw=raw, metrics=step.metrics,
                raw_samples=next((one.samples for one in step.parts if one.samples is not None), ()),
                extra=step.extra, categories=step.categories,
            )
        )  # fmt: skip
    writer.write_meshes([dict(mesh) for mesh in meshes])
    writer.close()
    return writer.path


def _graph(step: Step) -> dict[str, Any]:
    keys = [one.key for one in step.parts if one.key.of in ("value", "parameter")]
    nodes = [
        {"node": key.node, "role": key.role, "pass": key.pass_, "kind": key.kind, "module": "", "source": "",
         "shape": list(key.shape)} for key in keys
    ]  # fmt: skip
    return {"nodes": nodes, "edges": []}


def _world(meshes: Sequence[Any]) -> int:
    return 1 + max((rank for mesh in meshes for rank in mesh["ranks"]), default=0)


def _raw(one: Part) -> np.ndarray:
    values = one.tensor.numpy()
    if one.samples is None:
        return values
    return np.moveaxis(values, one.key.batch_dim, 0)[one.samples]
