"""Makes the recordings of one format, and what they hold as JSON. Run once per format, by hand; see README.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import numpy as np  # noqa: E402

from endoscope.query.recording import Recording  # noqa: E402
from endoscope.schema.recording import Key, RawValues  # noqa: E402
from endoscope.store.writer import TrialWriter  # noqa: E402
from tests.query.small_recording import write_small_recording  # noqa: E402
from tests.store.made_up import step_record  # noqa: E402

ODD = {  # dtype -> array as the writer wants it
    "bfloat16": np.array([0x3F80, 0xC000, 0x7FC0, 0x7F80], np.uint16),
    "float8_e4m3fn": np.array([0x38, 0xC0, 0x7F, 0x01], np.uint8),
    "float8_e5m2": np.array([0x3C, 0xC0, 0x7C, 0x01], np.uint8),
    "complex64": np.array([1 + 2j, -3j], np.complex64),
    "complex128": np.array([[1 + 2j], [-3j]], np.complex128),
    "bool": np.array([True, False]),
    "int64": np.array(-(2**40)),
    "float16": np.zeros((0, 3), np.float16),
}


def write_odd_values(root: Path) -> Path:
    writer = TrialWriter.create(root, "odd-values")
    raw = [RawValues(writer.key_id(Key(f"a {dtype}", dtype=dtype)), array) for dtype, array in ODD.items()]
    writer.write_step(step_record(writer, 3, keys=[], measured=None, raw=raw))
    writer.close()
    return writer.path


def write_thinned(root: Path) -> Path:
    writer = TrialWriter.create(root, "thinned", max_bytes=48_000)
    for number in range(7):
        writer.write_step(step_record(writer, number))
    return writer.path  # not closed: killed


def contents(trial: Path) -> dict[str, Any]:
    """All of a recording as plain data; NaN and infinities as text."""
    recording = Recording(trial)
    tables = "stats samples units steps metrics notes gaps keys".split()
    found: dict[str, Any] = {table: recording.read(table).to_pylist() for table in tables}
    found["config"], found["modules"], found["closed"] = recording.config, recording.modules, recording.closed
    found["graphs"] = {str(step.number): recording.graph(step.number) for step in recording.steps if step.graph}
    found["raw"] = {}
    for step in recording.steps:
        file = recording.tables.raw(step) if recording.tables.keys_with_raw(step) else None
        for key in sorted(file.entries) if file else []:
            array = file.array(key)
            found["raw"][f"{step.ordinal}:{key}"] = [str(array.dtype), list(array.shape), str(array.ravel().tolist())]
    return plain(found)


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value


def make(name: str) -> None:
    folder = Path(__file__).parent / name
    folder.mkdir()
    for trial in (write_small_recording(folder, "everything"), write_odd_values(folder), write_thinned(folder)):
        text = json.dumps(contents(trial), indent=None, separators=(",", ":"))
        (folder / f"{trial.name}.json").write_text(text + "\n")


if __name__ == "__main__":
    make(sys.argv[1])
