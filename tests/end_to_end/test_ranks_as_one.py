"""Real jobs of several processes, read as one: the numbers are those of the whole tensors that an oracle has seen."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import endoscope
from endoscope.errors import ValueNotKept
from endoscope.query.ranks.recording import WholeRecording
from endoscope.schema.stats import BUILT_IN, COUNTS, QUANTILES, WHOLE, histogram_edges
from endoscope.stats import Request, measure
from tests.end_to_end.conftest import FOUR, TWO
from tests.end_to_end.rank_jobs import KINDS, STEPS, is_summed_late, oracles
from tests.stats.compare import SINGLE, allowed, close, histogram_of, row

DIVIDED = ("up", "act")  # along their features, under tensor parallelism
EDGES = np.array(histogram_edges())
LEVELS = {one.name: one.level for one in BUILT_IN if one.level is not None}


@pytest.fixture(params=[kind for kind in (*TWO, *FOUR) if kind != "replicas"])  # which nothing ties together
def parted(request: pytest.FixtureRequest) -> Path:
    folder: Path = request.getfixturevalue("two" if request.param in TWO else "four")
    return folder / str(request.param)


def _opened(job: Path) -> WholeRecording:
    found = endoscope.open(job / "runs" / "trial")
    assert isinstance(found, WholeRecording)
    return found


def _results(job: Path, number: int) -> Iterator[tuple[str, str, Tensor]]:
    """(node, of, whole tensor) of what modules return in their first pass: batches side by side, and features, too."""
    of_rank = oracles(job)
    for node, of in of_rank[0]["results"]:
        batches: dict[int, list[Tensor]] = {}
        for oracle in of_rank:
            batches.setdefault(oracle["data"], []).append(oracle["results"][node, of][number * KINDS[job.name][1]])
        yield node, of, torch.cat([_of_batch(node, parts, job.name) for _, parts in sorted(batches.items())])


def _of_batch(node: str, parts: list[Tensor], kind: str) -> Tensor:
    if node.endswith(DIVIDED) and ("tp" in kind or kind.startswith("sequence")):
        return torch.cat(parts, dim=-1)
    assert all(torch.equal(parts[0], other) for other in parts)
    return parts[0]


def _is_the_same(recording: WholeRecording, node: str, of: str, number: int, whole: Tensor, dim: int | None) -> None:
    expected = measure([Request(whole.double(), dim)])
    wanted = row(expected, 0)
    found = recording.statistics(node, number, of=of, pass_=1)
    for name in WHOLE:
        own, where = wanted[name], (node, of, number, name)
        if name in COUNTS or name in ("min", "max", "abs_max"):
            assert found[name] == own, where
        elif name in QUANTILES and name in found.approximate:  # type: ignore[attr-defined]
            assert abs(found[name] - own) <= _bin_width(whole, LEVELS[name]), where
        else:
            assert close(found[name], own, allowed(name, wanted, SINGLE)), (*where, found[name], own)
    assert recording.histogram(node, number, of=of, pass_=1).counts.tolist() == histogram_of(expected, 0)
    (step,) = [one for one in recording.steps if one.number == number]
    raw = recording.tensor(node, number, of=of, pass_=1)
    kept = whole if raw.shape == whole.shape else whole[list(step.raw_samples)]
    assert raw.tolist() == kept.tolist() and len(kept), (node, of, number)


def _bin_width(whole: Tensor, level: float) -> float:
    """Of the wider one of the bins that the elements on both sides of a quantile lie in."""
    ordered = np.sort(whole.double().numpy().ravel())
    position = level * (len(ordered) - 1)
    places = np.searchsorted(EDGES, ordered[[math.floor(position), math.ceil(position)]])
    return float(np.max(EDGES[places] - EDGES[places - 1]))


def test_every_parameter_gradient_and_update(parted: Path) -> None:
    recording, (oracle, *_) = _opened(parted), oracles(parted)
    for number in range(STEPS):
        for of in ("parameter", "gradient", "update"):
            for node, whole in oracle["steps"][number][of].items():
                if of == "gradient" and is_summed_late(parted, node):
                    assert recording.tensor(node, number, of=of).tolist() == whole.tolist()
                    with pytest.raises(ValueNotKept, match="each rank has a summand of it"):
                        recording.statistics(node, number, of=of)
                else:
                    _is_the_same(recording, node, of, number, whole, None)


def test_everything_that_modules_return(parted: Path) -> None:
    recording = _opened(parted)
    for number in range(STEPS):
        for node, of, whole in _results(parted, number):
            _is_the_same(recording, node, of, number, whole, 0)


def test_losses(parted: Path) -> None:
    """Of data that is divided the mean and the range over its parts; else the one that all processes have."""
    recording = _opened(parted)
    of_batches = {oracle["data"]: oracle["losses"] for oracle in oracles(parted)}
    losses = np.array([of_batches[data] for data in sorted(of_batches)])[:, :: KINDS[parted.name][1]]
    for statistic, merge in (("mean", np.mean), ("min", np.min), ("max", np.max), ("count", len)):
        series = recording.series("loss", statistic, pass_=1)
        assert series.gaps == ("",) * STEPS
        np.testing.assert_allclose(series.values, [merge(column) for column in losses.T], rtol=1e-7)


def test_what_has_no_whole(parted: Path) -> None:
    """Only what one process has of its own, and the statistics of sums."""
    recording = _opened(parted)
    gaps = {(gap.node, gap.of) for gap in recording.gaps if "there is no whole" in gap.reason}
    late = {name for name in recording.nodes if is_summed_late(parted, name) and name.endswith(("weight", "bias"))}
    assert {node for node, of in gaps if of != "local_gradient"} == late
    assert {of for node, of in gaps if node in late} <= {"gradient"}
