"""Numbers of wholes, put together from those of ranks, are those of the whole tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import endoscope
from endoscope.schema.stats import COUNTS, HISTOGRAM_BINS, QUANTILES, SAMPLE, UNIT, WHOLE, histogram_edges
from endoscope.stats import Request, measure
from tests.query.ranks.made_up import DATA, TWO_BY_TWO, Part, Step, part, placed, sharded, write_rank

EDGES = np.array(histogram_edges())


def _tensor(*shape: int, seed: int = 0, strange: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(shape, generator=generator) * 10.0 ** torch.randint(-3, 3, shape, generator=generator)
    found = torch.where(torch.rand(shape, generator=generator) < 0.1, 0.0, found).double()  # measured without rounding
    if strange:
        flat = found.view(-1)
        flat[0], flat[1], flat[-1] = float("nan"), float("inf"), -float("inf")
    return found


def _batch(whole: torch.Tensor, sizes: list[int]) -> list[Part]:
    return [part("x", own, placed(["batch"]), batch_dim=0) for own in whole.split(sizes)]


def _tensor_parallel(whole: torch.Tensor) -> list[Part]:
    """Batches over the first dimension of the mesh, features over the second."""
    found = []
    for rows in whole.chunk(2):
        for start, columns in ((0, 3), (3, whole.shape[1] - 3)):
            intervals = [[[0, len(rows)]], [[start, columns]]]
            own = rows[:, start : start + columns].clone()
            found.append(part("x", own, placed(["batch", "shard"], rows.shape, intervals), batch_dim=0))
    return found


def _strided(whole: torch.Tensor) -> list[Part]:
    """Two intervals of rows on each rank."""
    found = []
    for first in (0, 2):
        places = [first, first + 1, first + 4, first + 5]
        intervals = [[[first, 2], [first + 4, 2]], [[0, whole.shape[1]]]]
        found.append(part("x", whole[places].clone(), placed(["shard"], whole.shape, intervals), of="parameter"))
    return found


CASES: dict[str, tuple[torch.Tensor, int | None, Callable[[torch.Tensor], list[Part]], dict[str, object]]] = {
    "batches": (_tensor(12, 7), 0, lambda x: _batch(x, [6, 6]), DATA),
    "uneven batches": (_tensor(11, 7, seed=1), 0, lambda x: _batch(x, [9, 2]), DATA),
    "not finite": (_tensor(8, 5, seed=2, strange=True), 0, lambda x: _batch(x, [4, 4]), DATA),
    "nothing finite in one": (
        torch.cat([torch.full((3, 4), float("nan")).double(), _tensor(5, 4)]), 0, lambda x: _batch(x, [3, 5]), DATA,
    ),
    "equal": (torch.full((8, 3), 0.1).double(), 0, lambda x: _batch(x, [4, 4]), DATA),
    "huge": (_tensor(8, 3).double() * 1e306, 0, lambda x: _batch(x, [4, 4]), DATA),
    "tiny": (_tensor(8, 3).double() * 1e-300, 0, lambda x: _batch(x, [4, 4]), DATA),
    "replicated": (_tensor(6, 5), None, lambda x: [part("x", x, placed(["replicate"]), of="parameter")] * 2, DATA),
    "shards of rows": (
        _tensor(7, 5), None, lambda x: [sharded("x", x, 0, at, of="parameter") for at in ((0, 4), (4, 7))], DATA,
    ),
    "shards of columns": (
        _tensor(7, 5), None, lambda x: [sharded("x", x, 1, at, of="parameter") for at in ((0, 3), (3, 5))], DATA,
    ),
    "an empty shard": (
        _tensor(1, 5), None, lambda x: [sharded("x", x, 0, at, of="parameter") for at in ((0, 1), (1, 1))], DATA,
    ),
    "strided shards": (_tensor(8, 3), None, _strided, DATA),
    "batches of shards": (_tensor(10, 7), 0, _tensor_parallel, TWO_BY_TWO),
}  # fmt: skip


@pytest.fixture(params=CASES, ids=[name.replace(" ", "_") for name in CASES])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[endoscope.Recording, torch.Tensor, int | None]:
    whole, batch_dim, divide, mesh = CASES[request.param]
    for rank, own in enumerate(divide(whole)):
        path = write_rank(tmp_path, rank, {3: Step([own])}, [mesh])
    return endoscope.open(path), whole, batch_dim


def _of(recording: endoscope.Recording) -> str:
    return recording.tensors_of("x")[0].of


def _bin_width(value: float) -> float:
    if abs(value) > EDGES[-1]:  # the outermost bins have no end
        return float("inf")
    place = int(np.clip(np.searchsorted(EDGES, value), 1, HISTOGRAM_BINS))
    return float(EDGES[place] - EDGES[place - 1])


def test_statistics(case: tuple[endoscope.Recording, torch.Tensor, int | None]) -> None:
    recording, whole, batch_dim = case
    expected = {name: values[0] for name, values in measure([Request(whole, batch_dim)]).whole.items()}
    found = recording.statistics("x", 3, of=_of(recording))
    for name in WHOLE:
        series = recording.series("x", name, of=_of(recording))
        assert series.steps.tolist() == [3] and series.gaps == ("",)
        np.testing.assert_array_equal(series.values[0], found[name])
        if name in COUNTS or name in ("min", "max", "abs_max"):
            np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
        elif name in QUANTILES:
            assert series.approximate == (name in found.approximate)  # type: ignore[attr-defined]
            near = _bin_width(expected[name]) if series.approximate else 0.0
            assert abs(found[name] - expected[name]) <= near or np.isnan(expected[name])
        else:
            size = expected["abs_mean"] if name == "mean" else expected[name]
            assert abs(found[name] - expected[name]) <= 1e-12 * size or found[name] == expected[name]
    assert recording.statistics("x", 3, of=_of(recording)).ranks == tuple(recording.ranks)  # type: ignore[attr-defined]


def test_histogram(case: tuple[endoscope.Recording, torch.Tensor, int | None]) -> None:
    recording, whole, batch_dim = case
    measured = measure([Request(whole, batch_dim)])
    expected = np.zeros(HISTOGRAM_BINS, np.int64)
    first = measured.hist_first[0]
    expected[first : first + len(measured.hist_values)] = measured.hist_values
    np.testing.assert_array_equal(recording.histogram("x", 3, of=_of(recording)).counts, expected)


def test_samples(case: tuple[endoscope.Recording, torch.Tensor, int | None]) -> None:
    recording, whole, batch_dim = case
    if batch_dim is None:
        return
    expected = measure([Request(whole, batch_dim)])
    found = recording.samples("x", 3)
    assert found["sample"].tolist() == expected.sample_index.tolist()
    for name in SAMPLE:
        np.testing.assert_allclose(found[name], expected.samples[name], rtol=1e-6, err_msg=name)
    first_of_last = len(whole) - recording.rank(recording.ranks[-1]).tensors_of("x")[0].shape[0]
    assert set(found["rank"][first_of_last:]) == {2 if len(recording.ranks) == 4 else 1}
    assert set(found["rank"][:first_of_last]) == {0}


def test_units(case: tuple[endoscope.Recording, torch.Tensor, int | None]) -> None:
    recording, whole, batch_dim = case
    if batch_dim is None:
        return
    expected = measure([Request(whole, batch_dim)])
    found = recording.units("x", 3)
    for name in UNIT:
        assert found[name].shape == expected.unit_shape[0]
        if name == "abs_max" or torch.isfinite(whole).all():
            held = np.isfinite(expected.units[name])  # in single precision
            np.testing.assert_allclose(found[name].reshape(-1)[held], expected.units[name][held], rtol=1e-5)
        else:  # how many finite elements a unit has on each rank is not recorded
            assert np.isnan(found[name]).all()


def test_raw_values(case: tuple[endoscope.Recording, torch.Tensor, int | None]) -> None:
    recording, whole, _ = case
    np.testing.assert_array_equal(recording.tensor("x", 3, of=_of(recording)), whole.numpy())
    assert recording.tensors_of("x")[0].shape == tuple(whole.shape)
