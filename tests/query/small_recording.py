"""A small recording with everything in it: types, roles, passes, two losses, changing shapes, raw values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from endoscope.schema.recording import GapRecord, Key, RawValues, StepRecord
from endoscope.store.writer import TrialWriter
from tests.store.made_up import measured

OUT = {"batch_dim": 0, "module": "encoder", "source": "model.py:7"}
KEYS = [
    Key("encoder", shape=(4, 3), **OUT),
    Key("encoder", pass_=2, shape=(4, 3), **OUT),
    Key("encoder", of="gradient:main", shape=(4, 3), **OUT),
    Key("encoder", of="gradient:aux", shape=(4, 3), **OUT),
    Key("sums", role="digit 1", shape=(4, 3), batch_dim=0),
    Key("sums", role="digit 2", shape=(4, 3), batch_dim=0),
    Key("head", of="gradient:main", shape=(4, 3), batch_dim=0),
    Key("loss", kind="loss"),
    Key("encoder.weight", of="parameter", kind="parameter", shape=(3, 3)),
]
SHORT = [0, 8]  # rows of a step with less in it
WIDE = Key("encoder", shape=(6, 3), **OUT)  # the same tensor with a larger batch

#: number, type, which keys; step 2 was recorded twice, with different types.
STEPS = [
    (0, "train", KEYS),
    (1, "rare", [KEYS[row] for row in SHORT]),
    (2, "train", KEYS),
    (2, "rare", KEYS),
    (5, "train", [WIDE, *KEYS[1:]]),
]


def numbers_of(ordinal: int) -> object:
    """What was measured at the n-th recorded step."""
    return measured(len(STEPS[ordinal][2]), samples=6 if ordinal == 4 else 4, seed=100 + ordinal)


def raw_of(ordinal: int) -> np.ndarray:
    return np.arange(6, dtype=np.float32).reshape(2, 3) + 10 * ordinal


def write_small_recording(root: Path, name: str = "small") -> Path:
    writer = TrialWriter.create(root, name, config={"lr": 0.1, "name": name})
    writer.write_modules({"encoder": {"type": "Linear", "parameters": 9}})
    writer.write_note(0, 5.0, "begin")
    for ordinal, (number, type_, keys) in enumerate(STEPS):
        ids = [writer.key_id(key) for key in keys]
        raw = [RawValues(ids[0], raw_of(ordinal), [1, 3]), RawValues(ids[-1], np.eye(3, dtype=np.float32))]
        writer.write_step(
            StepRecord(
                number=number,
                type=type_,
                time=10.0 + ordinal,
                why="every(1)",
                recording_seconds=0.25,
                graph_hash="h1" if ordinal else "h0",
                graph={"nodes": [key.node for key in keys]},
                keys=np.array(ids),
                measured=numbers_of(ordinal),
                raw=raw,
                raw_samples=[1, 3],
                metrics={"loss": 1.0 / (ordinal + 1)},
                gaps=[GapRecord("buffer", "value", "sparse")] if ordinal == 2 else [],
                config={"beam": ordinal},
                extra={"cosines": {"encoder": 0.5}},
            )
        )
    writer.write_metrics(3, "train", 20.0, {"loss": 7.0, "lr": 0.01})
    writer.close()
    return writer.path
