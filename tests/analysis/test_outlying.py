"""Which sample stands out, and where that begins."""

import statistics

import numpy as np
import pytest

from endoscope.analysis.outlying import FEATURES, UNUSUAL, beginnings, scores


def of_samples(values: np.ndarray) -> dict[str, np.ndarray]:
    """Statistics of [tensors, samples, elements]."""
    return {
        "abs_max": np.abs(values).max(2), "norm": np.linalg.norm(values, axis=2), "std": values.std(2),
        "mean": values.mean(2), "min": values.min(2), "max": values.max(2),
    }  # fmt: skip


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 16, 32))


def test_healthy_samples_are_usual(values: np.ndarray) -> None:
    assert scores(of_samples(values)).max() < UNUSUAL


@pytest.mark.parametrize("change", ["scale", "shift", "spike", "zero", "constant"])
def test_a_changed_sample_is_not(values: np.ndarray, change: str) -> None:
    sample = values[7, 3]
    changed = {
        "scale": sample * 20, "shift": sample + 20, "zero": sample * 0, "constant": sample * 0 + 2.0,
        "spike": np.where(np.arange(32) == 4, 40.0, sample),
    }  # fmt: skip
    values[7, 3] = changed[change]
    found = scores(of_samples(values))
    assert np.argwhere(found > UNUSUAL).tolist() == [[7, 3]]


def test_a_score_is_a_distance_in_spreads() -> None:
    """The slow way, for the one statistic that differs."""
    sizes = [1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 5.0]
    table = {name: np.full((1, 7), 1.0) for name in FEATURES} | {"norm": np.array([sizes])}
    logs = [float(np.log(size)) for size in sizes]
    middle = statistics.median(logs)
    mad = 1.4826 * statistics.median(abs(log - middle) for log in logs)
    iqr = 0.7413 * float(np.percentile(logs, 75) - np.percentile(logs, 25))
    expected = abs(logs[-1] - middle) / max(max(mad, iqr) * (1 + 4 / 7), 0.15)
    assert scores(table)[0, -1] == pytest.approx(expected)


def test_few_samples_say_nothing(values: np.ndarray) -> None:
    values[0, 0] = 1e6
    assert not scores(of_samples(values[:, :4])).any()


GRAPH = {5: [4], 4: [2, 3], 3: [1], 2: [0], 1: [0], 0: []}


@pytest.mark.parametrize(
    ("unusual", "start", "gap", "expected"),
    [
        ({5, 4, 2}, 5, 0, {2: (2, 4, 5)}),
        ({5, 4, 2, 3}, 5, 0, {2: (2, 4, 5), 3: (3, 4, 5)}),
        ({5, 4, 1}, 5, 0, {4: (4, 5)}),
        ({5, 4, 1}, 5, 1, {1: (1, 3, 4, 5)}),
        ({2}, 5, 0, {2: (2, 4, 5)}),
        (set(), 5, 2, {}),
    ],
)
def test_where_it_begins(unusual: set[int], start: int, gap: int, expected: dict[int, tuple[int, ...]]) -> None:
    found = beginnings([start], lambda node: GRAPH[node], unusual.__contains__, gap)
    assert {one.node: one.path for one in found} == expected
