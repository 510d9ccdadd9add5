"""Recordings that the page is measured with: a trained transformer, and a large one whose numbers are made up.

python benchmarks/page.py --folder FOLDER --record      makes them and nothing else

Nothing is trained for the large one: its structure is that of a deep transformer, and its gradients shrink from layer
to layer, so that there is something to see. 1,000 steps of 1,000 nodes take 1.2 GB.
"""

from __future__ import annotations

import math
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from endoscope.schema.recording import Key, RawValues, StepRecord
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.store import description, paths
from endoscope.store.writer import TrialWriter

SAMPLES, UNITS, BINS, RAW_TENSORS = 8, 16, 24, 50
LOSS = "loss"

#: One layer, in the order of computation: name, what it reads ("" is what enters the layer), parameters.
BLOCK: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("norm1", ("",), ("weight", "bias")),
    ("attention.query", ("norm1",), ("weight", "bias")),
    ("attention.key", ("norm1",), ("weight", "bias")),
    ("attention.value", ("norm1",), ("weight", "bias")),
    ("attention.scores", ("attention.query", "attention.key"), ()),
    ("attention.mixed", ("attention.scores", "attention.value"), ()),
    ("attention.project", ("attention.mixed",), ("weight", "bias")),
    ("add1", ("", "attention.project"), ()),
    ("norm2", ("add1",), ("weight", "bias")),
    ("feed.up", ("norm2",), ("weight", "bias")),
    ("feed.bend", ("feed.up",), ()),
    ("feed.down", ("feed.bend",), ("weight",)),
    ("out", ("add1", "feed.down"), ()),
)
NODES_PER_LAYER = sum(1 + len(parameters) for _, _, parameters in BLOCK)


def transformer(root: Path, steps: int = 30, trial: str = "transformer") -> Path:
    """The transformer of the other benchmarks, every step recorded, with raw values of five samples."""
    import torch
    from training import select

    import endoscope

    torch.set_num_threads(1)
    training = select("transformer")[0].make()
    run = endoscope.Run(root, trial=trial, when=1, keep=5, config={"steps": steps})
    run.watch(training.model, training.optimizer)
    for _ in range(steps):
        loss = training.loss()
        loss.backward()
        training.update()
        run.metric("loss", loss)
    run.close()
    return Path(run.path)


class Structure:
    """Nodes and edges of as many layers as give the wanted number of nodes."""

    def __init__(self, nodes: int) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[list[Any]] = []
        self.depth: list[float] = []  # 0 at the input, 1 at the loss
        layers = max((nodes - 3) // NODES_PER_LAYER, 1)
        entering = self._add("input", "", "input", 0.0)
        for layer in range(layers):
            entering = self._layer(f"layers.{layer}", entering, (layer + 1) / layers)
        while len(self.nodes) < nodes - 1:
            entering = self._add(f"head.{len(self.nodes)}", "head", "computed", 1.0, [entering])
        self._add(LOSS, "", "loss", 1.0, [entering])

    def _layer(self, address: str, entering: int, depth: float) -> int:
        places = {"": entering}
        for name, reads, parameters in BLOCK:
            module = f"{address}.{name}"
            own = [self._add(f"{module}.{part}", module, "parameter", depth) for part in parameters]
            places[name] = self._add(module, module, "computed", depth, [places[read] for read in reads] + own)
        return places["out"]

    def _add(self, node: str, module: str, kind: str, depth: float, reads: list[int] | None = None) -> int:
        shape = [UNITS, UNITS] if kind == "parameter" else [SAMPLES, UNITS]
        within = [module.rsplit(".", n)[0] for n in range(module.count("."), -1, -1)] if module else []
        self.nodes.append(
            {"node": node, "role": "", "pass": 1, "kind": kind, "module": module, "source": f"model.py:{len(within)}",
             "type": kind, "modules": within, "shape": shape}
        )  # fmt: skip
        self.depth.append(depth)
        place = len(self.nodes) - 1
        self.edges += [[read, place, [str(argument)]] for argument, read in enumerate(reads or [])]
        return place

    def all_keys(self) -> list[Key]:
        """The value of every node, then its gradient."""
        found = []
        for of in ("value", f"gradient:{LOSS}"):
            for node in self.nodes:
                is_parameter = node["kind"] == "parameter"
                found.append(
                    Key(node["node"], of="parameter" if is_parameter and of == "value" else of, kind=node["kind"],
                        shape=tuple(node["shape"]), batch_dim=-1 if is_parameter else 0, module=node["module"])
                )  # fmt: skip
        return found

    def modules(self) -> dict[str, Any]:
        """The tree of modules, as a model would have described it."""
        addresses = sorted({address for node in self.nodes for address in ["", *node["modules"]]})
        return {"modules": [self._module(address, addresses) for address in addresses]}

    def _module(self, address: str, addresses: list[str]) -> dict[str, Any]:
        inside = f"{address}." if address else ""
        children = [a for a in addresses if a and a.startswith(inside) and "." not in a[len(inside) :]]
        held = [
            n for n in self.nodes if n["kind"] == "parameter" and (not address or f"{n['module']}.".startswith(inside))
        ]
        own = [n for n in held if n["module"] == address]
        count = UNITS * UNITS * len(held)
        shapes = [{"name": n["node"], "shape": n["shape"], "dtype": "float32", "trainable": True} for n in own]
        return {"address": address, "type": "Linear" if own else "Module", "children": children, "parameters": count,
                "trainable": count, "own": shapes, "settings": ""}  # fmt: skip


class MadeUp:
    """Measurements of a step. Numbers drift over time; gradients are smaller the farther from the loss."""

    def __init__(self, structure: Structure) -> None:
        self._chance = np.random.default_rng(0)
        depth = np.array(structure.depth)
        self._size = np.concatenate([np.ones(len(depth)), 10.0 ** (4 * (depth - 1))])
        tensors = len(self._size)
        has_samples = np.array([n["kind"] != "parameter" for n in structure.nodes] * 2)
        self._sampled = np.flatnonzero(has_samples).astype(np.int32)
        self._units = np.where(has_samples, UNITS, 0)
        self._hist = (1000 * np.exp(-((np.arange(BINS) - BINS / 2) ** 2) / 20)).astype(np.uint32)
        self._first = np.clip(140 + 2 * np.log2(self._size), 128, 220).astype(np.int16)
        self.tensors = tensors

    def step(self, progress: float) -> Any:
        chance, tensors = self._chance, self.tensors
        scale = self._size * math.exp(-progress) * (1 + 0.05 * chance.standard_normal(tensors))
        whole = {}
        for name in WHOLE:
            whole[name] = (
                np.full(tensors, 0 if name in ("nans", "infs", "neg_infs", "zeros") else SAMPLES * UNITS)
                if name in COUNTS
                else scale * (1 + 0.1 * chance.standard_normal(tensors))
            )
        rows = len(self._sampled) * SAMPLES
        per_sample = np.repeat(scale[self._sampled], SAMPLES).astype(np.float32)
        offsets = np.concatenate([[0], np.cumsum(self._units)]).astype(np.int32)
        per_unit = np.repeat(scale, self._units).astype(np.float32)
        return SimpleNamespace(
            whole=whole,
            hist_first=self._first,
            hist_values=np.tile(self._hist, tensors),
            hist_offsets=np.arange(tensors + 1, dtype=np.int32) * BINS,
            sample_request=np.repeat(self._sampled, SAMPLES),
            sample_index=np.tile(np.arange(SAMPLES, dtype=np.int32), len(self._sampled)),
            samples={name: per_sample * chance.random(rows, np.float32) for name in SAMPLE},
            unit_shape=[(UNITS,) if count else () for count in self._units],
            unit_offsets=offsets,
            units={name: per_unit * chance.random(len(per_unit), np.float32) for name in UNIT},
            gaps=[],
        )


def many(root: Path, trials: int, steps: int = 40, nodes: int = 40) -> Path:
    """As many small trials: one is made, the others are copies of it with a name and settings of their own."""
    first = large(root, steps, nodes, "trial-000")
    chance = np.random.default_rng(2)
    for number in range(1, trials):
        copy = root / f"trial-{number:03}"
        shutil.copytree(first, copy, ignore=shutil.ignore_patterns("raw"))
        found, _ = description.read(copy)
        config = {
            "lr": float(10 ** chance.uniform(-5, -1)),
            "seed": number,
            "act": str(chance.choice(["ReLU", "GELU"])),
        }
        found |= {"name": copy.name, "created": found["created"] + number, "config": config}
        (copy / paths.TRIAL).write_bytes(description.text_of(found))
    return root


def large(root: Path, steps: int, nodes: int, trial: str = "large") -> Path:
    structure = Structure(nodes)
    made_up, chance = MadeUp(structure), np.random.default_rng(1)
    writer = TrialWriter.create(root, trial, config={"steps": steps, "nodes": nodes})
    writer.write_modules(structure.modules())
    keys = np.array([writer.key_id(key) for key in structure.all_keys()], np.int32)
    graph = {"hash": "large", "nodes": structure.nodes, "edges": structure.edges}
    started = time.time() - steps
    for number in range(steps):
        progress = number / steps
        raw = []
        if number % 10 == 0:
            raw = [
                RawValues(int(key), chance.standard_normal((4, UNITS), np.float32), [0, 1, 2, 3])
                for key, node in zip(keys[: 4 * RAW_TENSORS], structure.nodes, strict=False)
                if node["kind"] != "parameter"
            ]
        writer.write_step(
            StepRecord(
                number=number, type="odd" if number % 2 else "even", time=started + number, why="every step",
                graph_hash="large", graph=graph, keys=keys, measured=made_up.step(progress), raw=raw,
                raw_samples=[0, 1, 2, 3] if raw else [], categories=["a", "b"] * (SAMPLES // 2),
                metrics={"loss": math.exp(-progress), "accuracy": progress}, recording_seconds=0.01,
            )
        )  # fmt: skip
    writer.close()
    return writer.path
