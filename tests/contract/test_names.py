"""Labels, short labels, passes, module addresses, positions, and what happens with a wrong key."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import EndoscopeError, LookupFailed
from tests.contract.helpers import identical, labels
from tests.models import (
    DEMO_LABELS,
    ConvNet,
    DemoNetwork,
    OrganizedNetwork,
    RecurrentNetwork,
    SharedActivation,
    TiedEmbedding,
    TwoInputs,
)

X = torch.rand(5, 5)


def test_the_labels_of_the_demo_network() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    assert labels(trace.ops) == DEMO_LABELS
    assert labels(trace) == DEMO_LABELS
    assert len(trace) == len(DEMO_LABELS) == len(trace.ops)


def test_inputs_come_first() -> None:
    trace = endoscope.trace(TwoInputs(), (X, X + 1, 2.0))
    assert labels(trace.ops) == ["input_1_0", "input_2_1", "div_1_2", "mul_1_3", "output_1_4"]


def test_several_outputs_of_the_model_come_last() -> None:
    trace = endoscope.trace(lambda x: (x.exp(), x.sin()), X)
    assert labels(trace.ops) == ["input_1_0", "exp_1_1", "sin_1_2", "output_1_3", "output_2_4"]


def test_parameters_and_buffers_take_no_number() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    assert sorted(labels(trace.parameters)) == ["fc.bias", "fc.weight"]
    assert labels(trace.buffers) == ["example_buffer"]
    assert trace["fc.weight"].kind == "parameter"
    assert trace["example_buffer"].kind == "buffer"
    assert {"fc.weight", "fc.bias", "relu_1_2"} == set(labels(trace["linear_1_3"].parents))
    assert set(labels(trace["mul_1_9"].parents)) == {"div_1_8", "example_buffer"}


@pytest.mark.parametrize("label", DEMO_LABELS)
def test_full_label_short_label_pass_and_position(label: str) -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    position = DEMO_LABELS.index(label)
    short = label.rsplit("_", 1)[0]
    keys: list[Any] = [label, short, f"{label}:1", f"{short}:1", position, position - len(DEMO_LABELS)]
    assert [trace[key].label for key in keys] == [label] * len(keys)


def test_what_a_label_says() -> None:
    op = endoscope.trace(DemoNetwork(), X)["relu_2_4"]
    assert (op.label, op.layer, op.type, op.pass_, op.kind) == ("relu_2_4", "relu_2_4", "relu", 1, "computed")


def test_module_address_of_a_leaf() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    assert trace["fc"].label == trace["fc:1"].label == "linear_1_3"
    assert trace["relu_module"].label == "relu_1_2"


def test_module_address_at_any_level() -> None:
    trace = endoscope.trace(OrganizedNetwork(), X)
    inner = trace["submodule1.submodule2"]
    assert inner.type == "add"
    assert inner.modules == ("submodule1", "submodule1.submodule2")
    assert labels(inner.children) == [trace["submodule1"].label]
    assert trace["submodule1"].type == "mul"
    assert trace["submodule1:1"].modules == ("submodule1",)
    assert trace["output_1"].modules == ()
    assert trace["sum_1"].modules == ()


def test_one_op_is_the_output_of_nested_modules() -> None:
    trace = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8))
    assert trace["features.5"].label == trace["features"].label == "max_pool2d_2_6"
    assert trace["features.3"].label == trace["conv2d_2"].label == "conv2d_2_4"
    assert trace["classifier"].label == trace["classifier.2"].label == "linear_2_10"
    assert trace["features.3"].modules == ("features", "features.3")


def test_text_and_number_are_different_keys() -> None:
    trace = endoscope.trace(nn.Sequential(nn.Linear(5, 5), nn.Identity(), nn.ReLU()), X)
    assert trace["0"].label == "linear_1_1"
    assert trace[0].label == "input_1_0"
    assert trace["2"].label == "relu_1_2"
    assert trace["1"].label == "linear_1_1"  # Identity passes its input on


def test_passes_of_a_reused_parameter() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    linears = [op for op in trace.ops if op.type == "linear"]
    assert labels(linears) == ["linear_1_1:1", "linear_1_1:2", "linear_1_1:3"]
    assert [op.layer for op in linears] == ["linear_1_1"] * 3
    assert [op.pass_ for op in linears] == [1, 2, 3]
    for number, op in enumerate(linears, start=1):
        keys = [f"linear_1_1:{number}", f"linear_1:{number}", f"fc:{number}"]
        assert labels(trace[key] for key in keys) == [op.label] * 3
        assert identical(trace[f"fc:{number}"].value, op.value)
    assert trace.recurrent is True
    assert trace.max_passes == 3


def test_all_passes_together_count_as_one_layer_in_the_numbering() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    expected = "input_1_0 linear_1_1:1 mul_1_2:1 linear_1_1:2 mul_1_2:2 linear_1_1:3 mul_1_2:3 output_1_3"
    assert labels(trace.ops) == expected.split()
    assert [trace[position].label for position in (1, 3, -1)] == [
        "linear_1_1:1",
        "linear_1_1:2",
        "output_1_3",
    ]


def test_the_layer_without_a_pass_can_be_looked_up() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    for key in ("linear_1_1", "linear_1", "fc"):
        assert "linear_1_1" in str(trace[key])


def test_a_feedforward_model_has_one_pass() -> None:
    trace = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8))
    assert trace.recurrent is False
    assert trace.max_passes == 1
    assert {op.pass_ for op in trace.ops} == {1}


def test_a_module_without_parameters_called_twice_has_passes_but_its_ops_do_not() -> None:
    trace = endoscope.trace(SharedActivation(), X)
    assert labels(trace.ops) == [
        "input_1_0",
        "linear_1_1",
        "relu_1_2",
        "linear_2_3",
        "relu_2_4",
        "output_1_5",
    ]
    assert trace["act:1"].label == "relu_1_2"
    assert trace["act:2"].label == "relu_2_4"
    assert trace.recurrent is False


def test_one_matrix_read_by_two_kinds_of_functions_is_two_layers() -> None:
    trace = endoscope.trace(TiedEmbedding(), torch.tensor([[1, 2, 3]]))
    assert labels(trace.ops) == ["input_1_0", "embedding_1_1", "linear_1_2", "output_1_3"]
    assert trace.recurrent is False
    assert {"embedding_1_1", "linear_1_2"} == set(labels(trace["embed.weight"].children))


def test_one_convolution_run_twice_and_another_once() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.again = nn.Conv2d(1, 1, 3, padding=1)
            self.once = nn.Conv2d(1, 1, 3, padding=1)

        def forward(self, x: Tensor) -> Tensor:
            return self.again(self.once(self.again(x)))

    trace = endoscope.trace(Twice(), torch.rand(1, 1, 4, 4))
    assert labels(trace.ops) == ["input_1_0", "conv2d_1_1:1", "conv2d_2_2", "conv2d_1_1:2", "output_1_3"]
    assert trace["once"].label == "conv2d_2_2"
    assert trace["again:2"].label == "conv2d_1_1:2"
    assert trace.max_passes == 2


def test_positions_count_what_was_kept_if_only_some_was_kept() -> None:
    trace = endoscope.trace(DemoNetwork(), X, save="type:relu")
    assert labels([trace[0], trace[1], trace[-1], trace[-2]]) == [
        "relu_1_2",
        "relu_2_4",
        "relu_2_4",
        "relu_1_2",
    ]
    with pytest.raises(LookupFailed):
        trace[2]
    assert trace["linear_1_3"].label == "linear_1_3"


def test_positions_count_everything_if_nothing_was_kept() -> None:
    trace = endoscope.trace(DemoNetwork(), X, save="none")
    assert [trace[position].label for position in (0, 3, -1)] == ["input_1_0", "linear_1_3", "output_1_10"]


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("lineer_1_3", "linear_1_3"),
        ("linear_2", "linear_1"),
        ("relu_3", "relu_"),
        ("relu_modul", "relu_module"),
        ("fc.wieght", "fc.weight"),
        ("example_bufer", "example_buffer"),
        ("linear_1_3:2", "linear_1_3"),
        ("linear_1:2", "linear_1"),
        ("fc:2", "fc"),
        ("relu_2_4:7", "relu_2_4"),
    ],
)
def test_a_wrong_key_names_the_nearest(key: str, nearest: str) -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    with pytest.raises(LookupFailed) as caught:
        trace[key]
    message = str(caught.value)
    assert all(part in message for part in key.split(":"))
    assert nearest in message.replace(key, "", 1)


@pytest.mark.parametrize(
    "key", ["fc:0", "fc:-1", "linear_1_3:0", "linear_1_3:", "linear_1_3:x", ":1", "", "linear", "linear_1_2"]
)
def test_keys_that_only_look_right_are_refused(key: str) -> None:
    with pytest.raises(LookupFailed):
        endoscope.trace(DemoNetwork(), X)[key]


@pytest.mark.parametrize("key", [11, 500, -12, -500])
def test_a_position_out_of_range_is_refused(key: int) -> None:
    with pytest.raises(LookupFailed, match=re.escape(str(key))):
        endoscope.trace(DemoNetwork(), X)[key]


def test_a_pass_that_does_not_exist_is_refused_on_a_recurrent_layer_too() -> None:
    trace = endoscope.trace(RecurrentNetwork(), X)
    for key in ("linear_1_1:4", "fc:4", "linear_1_1:0"):
        with pytest.raises(LookupFailed, match=r"linear_1_1|fc"):
            trace[key]


def test_a_failed_look_up_is_a_key_error_that_reads_well() -> None:
    with pytest.raises(KeyError) as caught:
        endoscope.trace(DemoNetwork(), X)["nothing like it"]
    assert isinstance(caught.value, EndoscopeError)
    assert "nothing like it" in str(caught.value)
    assert str(caught.value) == caught.value.args[0], "a plain KeyError would show the message in quotes"


def test_an_empty_module_address_is_no_secret_key() -> None:
    trace = endoscope.trace(nn.ReLU(), X)
    assert labels(trace.ops) == ["input_1_0", "relu_1_1", "output_1_2"]
    assert trace["relu_1"].modules == ()


def test_every_label_shown_in_tables_can_be_looked_up() -> None:
    for model in (DemoNetwork(), RecurrentNetwork(), OrganizedNetwork()):
        trace = endoscope.trace(model, X)
        for op in [*trace.ops, *trace.parameters, *trace.buffers]:
            assert trace[op.label].label == op.label
            assert str(trace[op.layer]) != ""
            assert all(trace[other.label].label == other.label for other in (*op.parents, *op.children))


def test_the_same_structure_has_the_same_hash() -> None:
    one = endoscope.trace(DemoNetwork(), X)
    two = endoscope.trace(DemoNetwork(), torch.rand(5, 5) * 3)
    assert one.graph_hash == two.graph_hash
    assert hash(one.graph_hash) == hash(two.graph_hash)


@pytest.mark.parametrize(
    "target",
    [lambda x: (x + 1) * 2, lambda x: (x * 2) + 1, lambda x: (x + 1) * x, lambda x: x + 1],
    ids=["shorter", "order", "edge", "shortest"],
)
def test_another_structure_has_another_hash(target: Any) -> None:
    reference = endoscope.trace(lambda x: ((x + 1) * 2).exp(), X)
    assert endoscope.trace(target, X).graph_hash != reference.graph_hash


def test_one_edge_alone_changes_the_hash() -> None:
    def fork(x: Tensor) -> Tensor:
        first = x.exp()
        second, third = first.sin(), first.cos()
        return second + third

    def chain(x: Tensor) -> Tensor:
        first = x.exp()
        second = first.sin()
        third = second.cos()
        return second + third

    one, two = endoscope.trace(fork, X), endoscope.trace(chain, X)
    assert labels(one.ops) == labels(two.ops)
    assert one.graph_hash != two.graph_hash
