"""Recordings of every released format can be read, and hold what they held."""

import json
from pathlib import Path

import pytest
import torch

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


def test_a_recording_says_what_its_gradients_are(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="new", when=1) as run:
        run.watch(model, optimizer)
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    new, old = endoscope.open(run.path), endoscope.open(EXPECTED[0].with_suffix(""))
    assert isinstance(new, Recording) and isinstance(old, Recording)
    assert new.gradient_means == "what the optimizer used: after accumulation, unscaling and clipping"
    assert old.gradient_means == "what backward() computed in the step: before clipping and unscaling"


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 200_000
