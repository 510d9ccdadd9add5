"""Recordings with made-up numbers, for tests that need no training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from endoscope.schema.recording import Key, RawValues, StepRecord
from endoscope.schema.stats import COUNTS, SAMPLE, UNIT, WHOLE
from endoscope.store.writer import TrialWriter


@dataclass
class Measured:
    """The fields that the store reads from a measurement."""

    whole: dict[str, np.ndarray]
    hist_first: np.ndarray
    hist_values: np.ndarray
    hist_offsets: np.ndarray
    sample_request: np.ndarray
    sample_index: np.ndarray
    samples: dict[str, np.ndarray]
    unit_shape: list[tuple[int, ...]]
    unit_offsets: np.ndarray
    units: dict[str, np.ndarray]
    gaps: list[tuple[int, str]] = field(default_factory=list)


def measured(rows: int, samples: int = 4, unit_shape: tuple[int, ...] = (3,), seed: int = 0) -> Measured:
    """Random numbers; the last row has neither samples nor units, as a parameter has none."""
    rng = np.random.default_rng(seed)
    with_samples = max(rows - 1, 0)
    lengths = rng.integers(1, 20, rows)
    width = int(np.prod(unit_shape))
    whole: dict[str, np.ndarray] = {}
    for name in WHOLE:
        whole[name] = rng.integers(0, 1000, rows) if name in COUNTS else rng.standard_normal(rows)
    return Measured(
        whole=whole,
        hist_first=rng.integers(0, 200, rows).astype(np.int16),
        hist_values=rng.integers(0, 9, int(lengths.sum())).astype(np.uint32),
        hist_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        sample_request=np.repeat(np.arange(with_samples), samples).astype(np.int32),
        sample_index=np.tile(np.arange(samples), with_samples).astype(np.int32),
        samples={name: rng.standard_normal(with_samples * samples).astype(np.float32) for name in SAMPLE},
        unit_shape=[unit_shape] * with_samples + [()] * (rows - with_samples),
        unit_offsets=np.minimum(np.arange(rows + 1), with_samples).astype(np.int32) * width,
        units={name: rng.standard_normal(with_samples * width).astype(np.float32) for name in UNIT},
    )


def keys(rows: int = 3) -> list[Key]:
    """The outputs of a few layers, and the weight of the last one."""
    outputs = [
        Key(f"layer.{n}", shape=(4, 3), batch_dim=0, module=f"layer.{n}", source="model.py:12") for n in range(rows - 1)
    ]
    return [*outputs, Key(f"layer.{rows - 2}.weight", of="parameter", kind="parameter", shape=(3, 3))]


def step_record(writer: TrialWriter, number: int, rows: int = 3, type_: str = "train", **others: Any) -> StepRecord:
    """A step whose numbers follow from its number; `others` replaces fields."""
    fields: dict[str, Any] = {
        "number": number,
        "type": type_,
        "time": 1_700_000_000.0 + number,
        "why": "every step",
        "recording_seconds": 0.001,
        "graph_hash": "abc",
        "graph": {"nodes": ["layer.0"], "edges": []},
        "keys": np.array([writer.key_id(key) for key in keys(rows)], dtype=np.int32),
        "measured": measured(rows, seed=number),
        "raw": [RawValues(0, raw_array(number), [0, 2])],
        "raw_samples": [0, 2],
        "metrics": {"loss": 1.0 / (1 + number)},
    }
    return StepRecord(**(fields | others))


def raw_array(number: int) -> np.ndarray:
    return np.full((2, 3), number, dtype=np.float32) + np.arange(3, dtype=np.float32)


def write_trial(
    root: Path, name: str = "trial", steps: Sequence[int] = range(5), rows: int = 3, **options: Any
) -> Path:
    """A complete, closed trial."""
    writer = TrialWriter.create(root, name, config={"lr": 0.1}, **options)
    for number in steps:
        writer.write_step(step_record(writer, number, rows))
    writer.close()
    return writer.path


def check_steps(recording: Any, expected: Sequence[int]) -> None:
    """Every expected step is there with all that belongs to it, and no other."""
    assert [step.number for step in recording.steps] == list(expected)
    for number in expected:
        numbers = measured(3, seed=number)
        for row, node in enumerate(["layer.0", "layer.1", "layer.1.weight"]):
            found = recording.statistics(node, number)
            assert found == {name: numbers.whole[name][row].item() for name in WHOLE}
        assert recording.samples("layer.1", number)["std"].tolist() == numbers.samples["std"][4:8].tolist()
        assert recording.units("layer.1", number)["std"].tolist() == numbers.units["std"][3:6].tolist()
        assert np.array_equal(recording.tensor("layer.0", number), raw_array(number))
    if not expected:
        assert recording.nodes == [] and len(recording.metrics) == 0
        return
    series = recording.series("layer.0", "mean")
    assert series.steps.tolist() == list(expected)
    assert series.values.tolist() == [measured(3, seed=number).whole["mean"][0] for number in expected]
    assert recording.metrics["loss"].steps.tolist() == list(expected)
