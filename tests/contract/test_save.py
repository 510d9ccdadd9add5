"""`save`: everything, nothing, or what the pattern language or a callable picks."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

import endoscope
from endoscope.errors import EndoscopeError, ValueNotKept
from tests.contract.helpers import identical, labels
from tests.models import DEMO_LABELS, ConvNet, DemoNetwork, OrganizedNetwork, RecurrentNetwork

X = torch.rand(5, 5)


def kept(trace: Any) -> list[str]:
    """Labels of the ops whose value can be read."""
    found = []
    for op in trace.ops:
        try:
            assert op.value is not None
            found.append(op.label)
        except ValueNotKept:
            continue
    return found


def test_everything_by_default() -> None:
    assert kept(endoscope.trace(DemoNetwork(), X)) == DEMO_LABELS
    assert kept(endoscope.trace(DemoNetwork(), X, save="all")) == DEMO_LABELS


def test_nothing_but_structure_and_metadata() -> None:
    model = DemoNetwork()
    bare = endoscope.trace(model, X, save="none")
    full = endoscope.trace(model, X)
    assert kept(bare) == []
    assert labels(bare.ops) == DEMO_LABELS
    for op, twin in zip(bare.ops, full.ops, strict=True):
        assert labels(op.parents) == labels(twin.parents)
        assert labels(op.children) == labels(twin.children)
        assert (op.shape, op.dtype, op.bytes, op.flops) == (twin.shape, twin.dtype, twin.bytes, twin.flops)
        assert (op.modules, op.source, op.kind) == (twin.modules, twin.source, twin.kind)
    assert bare.graph_hash == full.graph_hash


def test_reading_a_value_that_was_not_kept_names_the_op() -> None:
    trace = endoscope.trace(DemoNetwork(), X, save="none")
    with pytest.raises(ValueNotKept, match="linear_1_3") as caught:
        _ = trace["linear_1_3"].value
    assert isinstance(caught.value, EndoscopeError)
    assert "save" in str(caught.value)


@pytest.mark.parametrize(
    ("save", "expected"),
    [
        ("linear_1_3", ["linear_1_3"]),
        ("linear_1", ["linear_1_3"]),
        ("relu_2", ["relu_2_4"]),
        ("type:relu", ["relu_1_2", "relu_2_4"]),
        ("type:randn", ["randn_1_5"]),
        ("fc", ["linear_1_3"]),
        ("relu_module", ["relu_1_2"]),
        ("relu_*", ["relu_1_2", "relu_2_4"]),
        ("*_1_8", ["div_1_8"]),
        ("add_*", ["add_1_1", "add_2_6"]),
        (["type:relu", "fc"], ["relu_1_2", "linear_1_3", "relu_2_4"]),
        (["div_1", "pow_1_7"], ["pow_1_7", "div_1_8"]),
        (lambda op: op.type == "relu", ["relu_1_2", "relu_2_4"]),
        (lambda op: "fc" in op.modules, ["linear_1_3"]),
        (lambda op: op.kind == "generated", ["randn_1_5"]),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)
def test_what_is_picked_is_kept_and_nothing_else(save: Any, expected: list[str]) -> None:
    trace = endoscope.trace(DemoNetwork(), X, save=save)
    assert kept(trace) == expected
    assert labels(trace.ops) == DEMO_LABELS


def test_a_star_alone_is_everything() -> None:
    assert set(DEMO_LABELS) <= set(kept(endoscope.trace(DemoNetwork(), X, save="*")))


def test_module_paths_with_stars() -> None:
    x = torch.rand(1, 1, 8, 8)
    trace = endoscope.trace(ConvNet(), x, save="features.*")
    assert kept(trace) == [
        "conv2d_1_1",
        "relu_1_2",
        "max_pool2d_1_3",
        "conv2d_2_4",
        "relu_2_5",
        "max_pool2d_2_6",
    ]
    trace = endoscope.trace(ConvNet(), x, save=["features.3", "classifier.*"])
    assert kept(trace) == ["conv2d_2_4", "linear_1_8", "relu_3_9", "linear_2_10"]


def test_the_path_of_an_outer_module_keeps_at_least_its_output() -> None:
    trace = endoscope.trace(OrganizedNetwork(), X, save="submodule1.submodule2")
    assert trace["submodule1.submodule2"].label in kept(trace)
    assert not {"input_1_0", "log_1_4", "pow_1_5"} & set(kept(trace))


def test_a_label_with_several_passes_keeps_them_all_and_one_pass_keeps_one() -> None:
    every = endoscope.trace(RecurrentNetwork(), X, save="linear_1")
    assert kept(every) == ["linear_1_1:1", "linear_1_1:2", "linear_1_1:3"]
    single = endoscope.trace(RecurrentNetwork(), X, save="linear_1_1:2")
    assert kept(single) == ["linear_1_1:2"]


def test_kept_values_do_not_depend_on_what_else_is_kept() -> None:
    model = ConvNet()
    x = torch.rand(1, 1, 8, 8)
    full = endoscope.trace(model, x)
    some = endoscope.trace(model, x, save="type:relu")
    assert all(identical(some[label].value, full[label].value) for label in kept(some))
    assert len(kept(some)) == 3


@pytest.mark.parametrize(
    ("save", "near"),
    [
        ("lineer_1", "linear_1"),
        ("type:rellu", "relu"),
        ("relu_modul", "relu_module"),
        ("linear_1_4", "linear_1_3"),
        (["type:relu", "type:lineer"], "linear"),
    ],
)
def test_a_pattern_that_matches_nothing_lists_near_matches(save: Any, near: str) -> None:
    with pytest.raises(EndoscopeError) as caught:
        endoscope.trace(DemoNetwork(), X, save=save)
    message = str(caught.value)
    wrong = save if isinstance(save, str) else save[-1]
    assert wrong in message
    assert near not in wrong
    assert near in message


@pytest.mark.parametrize("save", [3, 2.5, {"relu": True}])
def test_a_save_that_is_no_pattern_is_refused(save: Any) -> None:
    with pytest.raises((EndoscopeError, TypeError)) as caught:
        endoscope.trace(DemoNetwork(), X, save=save)
    assert "save" in str(caught.value)


def test_a_callable_is_asked_about_ops() -> None:
    asked: list[str] = []

    def choose(op: Any) -> bool:
        asked.append(op.type)
        return bool(op.type == "relu" and tuple(op.shape) == (5, 5))

    endoscope.trace(DemoNetwork(), X, save=choose)
    assert {"add", "relu", "linear", "randn", "pow", "div", "mul"} <= set(asked)


def test_less_kept_means_less_memory_held() -> None:
    def released(save: str) -> bool:
        """Whether an intermediate tensor is gone once the model has let go of it."""
        seen: list[weakref.ref[Tensor]] = []

        def target(x: Tensor) -> Tensor:
            middle = x * 2
            seen.append(weakref.ref(middle))
            return middle.exp()

        trace = endoscope.trace(target, X, save=save)
        gc.collect()
        gone = seen[0]() is None
        return gone and len(trace) == 4

    assert released("none")
    assert released("type:exp")


@pytest.mark.parametrize("save", ["all", "none", "type:relu"])
def test_what_is_kept_changes_neither_result_nor_random_stream(save: str) -> None:
    model = DemoNetwork()
    torch.manual_seed(3)
    traced, after = endoscope.trace(model, X, save=save).result, torch.get_rng_state()
    torch.manual_seed(3)
    plain = model(X)
    assert identical(traced, plain)
    assert torch.equal(after, torch.get_rng_state())
