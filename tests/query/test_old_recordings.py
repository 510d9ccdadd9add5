"""Recordings of every released format can be read, and hold what they held."""

import json
from pathlib import Path

import pytest

import endoscope
from endoscope.query.recording import Recording
from tests.golden.recordings.make import contents
from tests.house.tree import ROOT, relative

GOLDEN = ROOT / "tests" / "golden" / "recordings"
EXPECTED = sorted(GOLDEN.glob("format-*/*.json"))


def test_there_is_a_recording_of_every_format() -> None:
    from endoscope.schema.recording import FORMAT_VERSION

    assert {path.parent.name for path in EXPECTED} == {f"format-{n}" for n in range(1, FORMAT_VERSION + 1)}


@pytest.mark.parametrize("expected", EXPECTED, ids=relative)
def test_an_old_recording_holds_what_it_held(expected: Path) -> None:
    recording = endoscope.open(expected.with_suffix(""))
    assert isinstance(recording, Recording)
    assert recording.verify() and recording.problems == []
    found, held = json.loads(json.dumps(contents(recording.path))), json.loads(expected.read_text())
    for part, values in held.items():  # a newer version may know of more
        if isinstance(values, list):
            for row, old in zip(found[part], values, strict=True):
                assert {name: row[name] for name in old} == old
        else:
            assert found[part] == values


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 200_000
