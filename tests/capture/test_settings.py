"""Settings: what an operation was told besides its tensors, alike for every batch and in every process."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
import pytest
import torch

from endoscope.capture.data.arguments import TENSOR
from endoscope.capture.views.settings import settings_text

X = torch.zeros(2, 3)


def text(type_: str, *args: Any, change: Any = None, left: Any = (), **kwargs: Any) -> str:
    return settings_text(type_, args, kwargs, change, left)


class Mode(enum.Enum):
    """An argument that is a member."""

    FAST = 1


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((X,), ""),
        ((X, TENSOR), ""),
        ((X, 2), "(., 2)"),
        ((X, 2.0), "(., 2.0)"),
        ((X, True, None, "mean"), "(., True, None, 'mean')"),
        ((X, (1, 2), [3]), "(., [1, 2], [3])"),
        (([X, X], 1), "([., .], 1)"),
        ((X, (slice(None), slice(1, None, 2), ..., None)), "(., [::, 1::2, Ellipsis, None])"),
        ((X, torch.float16, torch.strided), "(., torch.float16, torch.strided)"),
        ((X, {"b": 1, "a": X}), "(., {a: ., b: 1})"),
        ((X, Mode.FAST), "(., Mode.FAST)"),
        ((X, np.float64(0.5), np.int64(3)), "(., 0.5, 3)"),
        ((X, object(), len), "(., object, builtin_function_or_method)"),
        ((X, float("nan"), -0.0), "(., nan, -0.0)"),
    ],
)
def test_arguments(args: tuple[Any, ...], expected: str) -> None:
    assert text("op", *args) == expected


def test_keywords_are_sorted_and_those_that_say_where_are_left_out() -> None:
    assert text("op", X, b=1, a=X, device="cpu", generator=torch.Generator(), out=X) == "(., a=., b=1)"


def test_a_device_is_no_setting() -> None:
    assert text("to", X, torch.device("cpu")) == text("to", X, torch.device("meta"))


@pytest.mark.parametrize("batch", [1, 2, 7])
def test_sizes_are_those_of_activations(batch: int) -> None:
    assert text("zeros", batch, 3) == text("zeros", (batch, 3)) == text("zeros", size=[batch, 3]) == ""
    assert text("zeros", batch, dtype=torch.int64) == "(dtype=torch.int64)"
    assert text("full", (batch, 3), 7) == "(7)"
    assert text("new_full", X, [batch], 7) == "(., 7)"
    assert text("randint", 0, 10, (batch,)) == "(0, 10)"
    assert text("arange", batch) == text("arange", 0, batch) == ""
    assert text("linspace", 0.5, 1.5, steps=batch) == "(0.5, 1.5)"
    assert text("expand", X, batch, -1) == text("expand", X, (batch, -1)) == ""
    assert text("repeat", X, batch, 1, 4) == "(., 1, 4)"
    assert text("repeat", X, (batch, 1, 4)) == "(., [1, 4])"


def test_a_reshape_is_told_by_its_cuts() -> None:
    assert text("view", X, 2, 12, 64, change=((2, 768), (2, 12, 64))) == "3 ((64,),)"
    assert text("view", X, 2, -1, 64, change=((2, 768), (2, 12, 64))) == "3 ((64,),)"
    assert text("view", X, torch.int32, change=((2, 3), (2, 3))) == "(., torch.int32)"


def test_data_is_no_setting() -> None:
    assert text("tensor", [1.0, 2.0]) == text("tensor", 5) == text("as_tensor", data=[1]) == ""
    assert text("tensor", [1.0], dtype=torch.int64) == "(dtype=torch.int64)"
    assert text("new_tensor", X, [1, 2]) == ""


def test_numbers_that_came_out_of_a_tensor_are_no_settings() -> None:
    assert text("div", X, 0.12345, left={0.12345}) == "(., left)"
    assert text("div", X, 0.5, left={0.12345}) == "(., 0.5)"
