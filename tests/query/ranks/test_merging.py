"""How statistics of parts become those of the whole: each against its slow twin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import endoscope
from endoscope.errors import BadArgument
from endoscope.query.ranks.parts import Parts, merged
from endoscope.schema.stats import BUILT_IN, COUNTS, MERGES, Statistic, described
from tests.query.ranks.made_up import Step, part, placed, write_rank

numbers = st.one_of(
    st.floats(-1e6, 1e6), st.sampled_from([0.0, -0.0, 1e300, -1e300, 1e-300, math.nan, math.inf, -math.inf])
)
tensors = st.lists(st.lists(numbers, min_size=1, max_size=6), min_size=1, max_size=5)
MERGING = [one for one in BUILT_IN if one.merge is not None]


def _of(statistic: Statistic, elements: list[float]) -> float:
    assert statistic.twin is not None
    finite = elements if statistic.name in COUNTS else [x for x in elements if math.isfinite(x)]
    return float(statistic.twin(finite)) if finite else math.nan


def _merged(statistic: Statistic, parts: list[list[float]]) -> float:
    known = {one.name: one for one in BUILT_IN}

    def read(name: str) -> np.ndarray:
        return np.array([_of(known[name], own) for own in parts])

    found = merged(statistic, Parts(read))
    assert found is not None
    return float(found)


@pytest.mark.parametrize("statistic", MERGING, ids=lambda one: one.name)
@given(tensors)
def test_merged_as_the_twin_of_the_whole(statistic: Statistic, parts: list[list[float]]) -> None:
    everything = [x for own in parts for x in own]
    expected, found = _of(statistic, everything), _merged(statistic, parts)
    if math.isnan(expected) or statistic.name in (*COUNTS, "min", "max", "abs_max"):
        assert found == expected or (math.isnan(found) and math.isnan(expected))
        return
    # A mean, and a distance from it, may be the difference of numbers that are much larger.
    finite = [abs(x) for x in everything if math.isfinite(x)]
    size = max(finite) if statistic.name in ("mean", "std") else abs(expected)
    assert abs(found - expected) <= 1e-12 * size


def test_every_statistic_but_quantiles_merges() -> None:
    assert {one.name for one in BUILT_IN if one.merge is None} == {
        one.name for one in BUILT_IN if one.level is not None
    }


@pytest.fixture
def own() -> Iterator[list[Statistic]]:
    """Statistics of somebody else: one for each way to merge, a formula, and one that does not merge."""
    made = []
    for merge in (*MERGES, None, lambda parts: parts.mean(parts["mean_of_squares"])):
        name = merge if isinstance(merge, str) else "formula" if merge else "none"
        name = "mean_of_squares" if name == "formula" else f"by_{name}"

        @endoscope.statistic(name, merge=merge)
        def measure(values: torch.Tensor, name: str = name) -> torch.Tensor:
            """Something about numbers."""
            return {
                "by_sum": lambda: values.sum(), "by_mean": lambda: values.mean(), "by_min": lambda: values.min(),
                "by_max": lambda: values.max(), "by_norm": lambda: values.norm(), "by_none": lambda: values.median(),
                "mean_of_squares": lambda: (values**2).mean(),
            }[name]()  # fmt: skip

        made.append(measure)
    yield made
    for one in made:
        one.forget()


def test_statistics_of_somebody_else(tmp_path: Path, own: list[Statistic]) -> None:
    whole = torch.randn(10, 3, generator=torch.Generator().manual_seed(0)).double()
    for rank, rows in enumerate((whole[:4], whole[4:])):
        step = Step([part("x", rows, placed(["batch"]), batch_dim=0), part("w", whole, placed(["replicate"]))])
        path = write_rank(tmp_path, rank, {0: step})
    recording = endoscope.open(path)
    for statistic in own:
        assert statistic.measure is not None
        expected = float(statistic.measure(whole.flatten()))
        assert recording.series("w", statistic.name).values[0] == pytest.approx(expected, rel=1e-12)
        if statistic.name == "by_none":
            series = recording.series("x", "by_none")
            assert np.isnan(series.values).all() and "does not follow from those of its parts" in series.gaps[0]
            continue
        assert recording.series("x", statistic.name).values[0] == pytest.approx(expected, rel=1e-12)
        assert recording.statistics("x", 0)[statistic.name] == recording.series("x", statistic.name).values[0]
    assert described()["by_norm"]["merge"] == "norm" and "merge" not in described()["mean_of_squares"]


def test_a_way_to_merge_that_there_is_not() -> None:
    with pytest.raises(BadArgument, match="merge='median' of the statistic 'mine' is none of 'sum', 'mean'"):
        endoscope.statistic("mine", merge="median")
