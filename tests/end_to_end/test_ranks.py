"""Real jobs of several processes: what is recorded equals the whole tensors that an oracle has seen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from endoscope.query.recording import Recording
from endoscope.schema.recording import Key
from endoscope.store import paths
from tests.end_to_end.rank_jobs import STEPS, is_summed_late, oracles

PARAMETER_TABLES = ("parameter", "gradient", "update")


def recordings(job: Path) -> list[Recording]:
    """One for each process, of the one trial that they have written."""
    assert [path.name for path in (job / "runs").iterdir()] == ["trial"]
    trial = job / "runs" / "trial"
    found = [Recording(trial, rank=rank) for rank in paths.ranks_of(trial)]
    assert len(found) == len(oracles(job))
    return found


def key_of(recording: Recording, node: str, of: str) -> Key:
    (found,) = [key for key in recording.tensors_of(node) if key.of == of]
    return found


def together(parts: list[tuple[np.ndarray, dict[str, Any]]]) -> np.ndarray:
    """The whole tensor, from what each process has of it."""
    (over,) = {tuple(placement["over"]) for _, placement in parts}
    if "shard" not in over:
        partial = any(word.startswith("partial") for word in over)
        assert partial or all(np.array_equal(one, parts[0][0]) for one, _ in parts)
        return np.sum([one for one, _ in parts], axis=0) if partial else parts[0][0]
    whole = np.full(parts[0][1]["shape"], np.nan, np.float32)
    for part, placement in parts:
        places = [np.concatenate([np.arange(a, a + n) for a, n in one] or [[]]) for one in placement["parts"]]
        assert part.shape == tuple(map(len, places))
        whole[np.ix_(*(place.astype(int) for place in places))] = part
    return whole


def test_training_is_the_same_with_endoscope(job: Path) -> None:
    for oracle in oracles(job):
        assert oracle["losses"] == oracle["recorded"]["losses"]
        for name, end in oracle["end"].items():
            assert torch.equal(end, oracle["recorded"]["end"][name])


def test_every_parameter_gradient_and_update_is_that_of_the_whole(job: Path) -> None:
    recorded, (oracle, *others) = recordings(job), oracles(job)
    if job.name != "replicas":
        assert all(torch.equal(o["end"][name], end) for o in others for name, end in oracle["end"].items())
    for number in range(STEPS):
        for of in PARAMETER_TABLES:
            for name, expected in oracle["steps"][number][of].items():
                parts = []
                # What the optimizer adds up is what each process has of its own.
                own = "local_gradient" if of == "gradient" and is_summed_late(job, name) else of
                for recording in recorded:
                    placement = key_of(recording, name, own).placement
                    parts.append((recording.tensor(name, number, of=own), json.loads(placement or '{"over":[]}')))
                found = parts[0][0] if job.name == "replicas" else together(parts)
                assert np.array_equal(found, expected.numpy()), (number, of, name)


def test_every_process_says_what_its_gradients_are(job: Path) -> None:
    for recording, oracle in zip(recordings(job), oracles(job), strict=True):
        for name in oracle["end"]:
            keys = {key.of: key for key in recording.tensors_of(name)}
            is_late = is_summed_late(job, name)
            assert {"parameter", "update", "local_gradient" if is_late else "gradient"} <= set(keys)
            assert not [of for of in keys if of.startswith("gradient:")]
            if "local_gradient" in keys and job.name != "replicas":
                word = "partial:sum" if is_late else "local"
                assert set(json.loads(keys["local_gradient"].placement)["over"]) == {word}
            gaps = [gap.reason for gap in recording.gaps if (gap.node, gap.of) == (name, "gradient")]
            assert len(gaps) == is_late and all("p.grad.redistribute(placements=p.placements)" in gap for gap in gaps)
        missing = [gap for gap in recording.gaps if gap.of == "local_gradient"]
        assert bool(missing) == (job.name in ("fsdp", "tp", "sequence", "sequence-summed", "fsdp-tp", "hsdp"))
        assert len([gap for gap in recording.gaps if not gap.node]) == len(missing)


@pytest.mark.parametrize("kind", ["ddp", "ddp-accumulation"])
def test_the_gradient_of_one_process_is_its_own(two: Path, kind: str) -> None:
    for recording, oracle in zip(recordings(two / kind), oracles(two / kind), strict=True):
        for number in range(STEPS):
            for name, expected in oracle["steps"][number]["local_gradient"].items():
                found = recording.tensor(f"module.{name.removeprefix('module.')}", number, of="local_gradient")
                np.testing.assert_allclose(found, expected.numpy(), rtol=1e-6, atol=1e-8)


def test_all_steps_have_the_graph_of_one_process(job: Path) -> None:
    expected = {
        ("input", "inp"), ("inp.weight", "inp"), ("inp", "blocks.0.norm"), ("blocks.0.norm.weight", "blocks.0.norm"),
        ("blocks.0.norm", "blocks.0.up"), ("blocks.0.up.weight", "blocks.0.up"), ("blocks.0.up.bias", "blocks.0.up"),
        ("blocks.0.up", "blocks.0.act"), ("blocks.0.act", "blocks.0.down"), ("blocks.0.down", "blocks.0"),
        ("inp", "blocks.0"), ("blocks.0", "blocks.1"), ("blocks.1", "head"), ("head.weight", "head"),
        ("output", "loss"), ("target", "loss"),
    }  # fmt: skip
    for recording in recordings(job):
        for step in recording.steps:
            graph = recording.graph(step.number)
            names = [node["node"].removeprefix("module.") for node in graph["nodes"]]
            edges = {(names[a], names[b]) for a, b, _ in graph["edges"]}
            assert expected <= edges
            strange = [a for a, b in edges if b == "blocks.0.up" and a not in ("blocks.0.norm", *_OF_UP)]
            assert not strange


_OF_UP = ("blocks.0.up.weight", "blocks.0.up.bias")


def test_activations_say_what_they_are_to_those_of_others(two: Path, four: Path) -> None:
    def over(job: Path, node: str) -> list[str]:
        (recording, *_) = recordings(job)
        placement = key_of(recording, node, "value").placement
        return list(json.loads(placement)["over"]) if placement else []

    assert over(two / "ddp", "module.blocks.0.up") == over(two / "fsdp", "blocks.0.up") == ["batch"]
    assert over(two / "ddp", "loss") == over(two / "fsdp", "loss") == ["batch"]
    assert over(two / "tp", "blocks.0.up") == ["shard"]
    assert over(two / "tp", "blocks.0.down") == ["replicate"]
    assert over(two / "sequence", "blocks.0.norm") == ["shard"]
    assert over(four / "fsdp-tp", "blocks.0.up") == ["batch", "shard"]
    assert over(four / "hsdp", "blocks.0.up") == ["batch", "batch"]
    assert over(two / "replicas", "blocks.0.up") == []


def test_what_is_computed_for_other_samples_is_whole_side_by_side(two: Path) -> None:
    """Of the same network, divided in other ways, with the same data."""
    for node in ("blocks.0.down", "blocks.1.up", "loss"):
        one, other = recordings(two / "ddp"), recordings(two / "fsdp")
        for a, b in zip(one, other, strict=True):
            prefix = "" if node == "loss" else "module."
            for what in ("value", "gradient"):
                found = a.tensor(f"{prefix}{node}", 0, of=what), b.tensor(node, 0, of=what)
                np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-7)


def test_times_of_steps_are_there(job: Path) -> None:
    for recording in recordings(job):
        rows = recording.to_arrow("times").to_pylist()
        assert [row["step"] for row in rows] == list(range(STEPS))
        assert all(row["forward"] > 0 and row["backward"] > 0 and row["update"] > 0 for row in rows)
        assert all(row["steps"] == 1 and row["peak_memory"] > 0 for row in rows)
