"""`endoscope.compare(a, b)`: per operation, in order, against sums written out."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope import edits
from endoscope.errors import BadArgument
from tests.models import Mlp


def slow_distance(x: Tensor, y: Tensor) -> tuple[float, float, float]:
    """Largest difference, relative difference and cosine, one number at a time."""
    a, b = x.double().flatten().tolist(), y.double().flatten().tolist()
    apart = [abs(p - q) for p, q in zip(a, b, strict=True)]
    lengths = [math.sqrt(sum(p * p for p in values)) for values in (a, b, apart)]
    product = sum(p * q for p, q in zip(a, b, strict=True))
    return max(apart), lengths[2] / lengths[0], product / (lengths[0] * lengths[1])


def test_distances_are_what_sums_give() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    a = endoscope.trace(model, x)
    b = a.rerun(edit={"first": edits.noise(0.5)})
    for row in endoscope.compare(a, b):
        if row.label in ("linear_1_1", "relu_1_2", "linear_2_3", "output_1_4"):
            expected = slow_distance(a[row.label].value, b[row.label].value)
            assert (row.max_abs, row.relative, row.cosine) == pytest.approx(expected)
            assert row.status == "differs" and row.differs
        else:
            assert (row.status, row.max_abs, row.relative, row.cosine) == ("same", 0.0, 0.0, 1.0)


def test_the_first_divergence_comes_first() -> None:
    a = endoscope.trace(Mlp(), torch.rand(2, 5))
    comparison = endoscope.compare(a, a.rerun(edit={"relu_1": edits.scale(2)}))
    assert comparison.first is not None and comparison.first.label == "relu_1_2"
    assert [row.label for row in comparison.differing] == ["relu_1_2", "linear_2_3", "output_1_4"]
    assert not comparison.equal and not comparison
    assert comparison["relu_1_2"].relative == 1.0 and comparison.first.op is a["relu_1"]


def test_equal_traces() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    comparison = endoscope.compare(endoscope.trace(model, x), endoscope.trace(model, x))
    assert comparison and comparison.equal and comparison.first is None and len(comparison) == 9
    assert "0 of 9 differ" in str(comparison)


def test_two_models_first_differ_in_a_parameter() -> None:
    a, b = Mlp(), Mlp()
    b.load_state_dict(a.state_dict())
    with torch.no_grad():
        b.second.bias[2] += 1
    x = torch.rand(2, 5)
    comparison = endoscope.compare(endoscope.trace(a, x), endoscope.trace(b, x))
    assert [row.label for row in comparison.differing] == ["second.bias", "linear_2_3", "output_1_4"]
    assert comparison["second.bias"].max_abs == pytest.approx(1)


def test_operations_that_only_one_has() -> None:
    x = torch.rand(3)
    a = endoscope.trace(lambda x: x.sin().cos() + 1, x)
    b = endoscope.trace(lambda x: x.sin().exp().tan() + 1, x)
    rows = [(row.label, row.status) for row in endoscope.compare(a, b)]
    assert rows == [
        ("input_1_0", "same"),
        ("sin_1_1", "same"),
        ("exp_1_2", "only in b"),
        ("tan_1_3", "only in b"),
        ("add_1_4", "only in b"),
        ("output_1_5", "only in b"),
        ("cos_1_2", "only in a"),
        ("add_1_3", "only in a"),
        ("output_1_4", "only in a"),
    ]


def test_shapes_that_differ_are_told() -> None:
    a, b = (endoscope.trace(torch.sin, torch.rand(size)) for size in (2, 3))
    first = endoscope.compare(a, b).first
    assert first is not None and first.max_abs is None
    assert first.note == "(2,) torch.float32 in a, (3,) torch.float32 in b"
    assert str(first) == f"input_1_0: {first.note}"


def test_values_that_were_not_kept_are_told_and_do_not_count() -> None:
    model, x = Mlp(), torch.rand(2, 5)
    comparison = endoscope.compare(endoscope.trace(model, x), endoscope.trace(model, x, save="relu_1"))
    assert comparison["relu_1_2"].status == "same"
    assert comparison["linear_1_1"].status == "not kept"
    assert comparison.equal and "8 not kept" in str(comparison)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0, float("nan")], [1.0, 2.0], math.inf),
        ([1.0, float("inf")], [1.0, float("inf")], 0.0),
        ([1.0, float("inf")], [2.0, float("inf")], 1.0),
        ([0.0, 0.0], [0.0, 1.0], 1.0),
        ([1, 2], [1, 5], 3.0),
        ([True, False], [True, True], 1.0),
        ([1 + 1j, 2j], [1 + 1j, 1j], 1.0),
    ],
)
def test_numbers_of_all_kinds(left: Any, right: Any, expected: float) -> None:
    a, b = (endoscope.trace(torch.clone, torch.tensor(values)) for values in (left, right))
    assert endoscope.compare(a, b)["clone_1_1"].max_abs == expected


def test_a_small_difference_can_be_allowed() -> None:
    a = endoscope.trace(Mlp(), torch.rand(2, 5))
    b = a.rerun(edit={"relu_1": edits.scale(1.001)})
    assert not endoscope.compare(a, b)
    assert endoscope.compare(a, b, tolerance=0.01)
    assert "within 0.01" in str(endoscope.compare(a, b, tolerance=0.01))


def test_as_text_and_as_a_table() -> None:
    a = endoscope.trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()), torch.rand(1, 2))
    comparison = endoscope.compare(a, a.rerun(edit={"0": edits.add(1)}))
    text = str(comparison)
    assert "3 of 6 differ" in text and "First: linear_1_1 (" in text
    assert text == repr(comparison) and "<td>linear_1_1</td>" in comparison._repr_html_()
    frame = comparison.to_pandas()
    assert list(frame.columns) == ["label", "type", "status", "max_abs", "relative", "cosine", "note"]
    assert list(frame.status).count("differs") == 3


def test_only_traces_are_compared() -> None:
    trace = endoscope.trace(torch.sin, torch.rand(2))
    with pytest.raises(BadArgument, match=r"compare\(\) needs two traces"):
        endoscope.compare(trace, torch.rand(2))  # type: ignore[arg-type]
    with pytest.raises(BadArgument, match="tolerance=-1"):
        endoscope.compare(trace, trace, tolerance=-1)
