"""`print(trace)`, `print(op)`, and what a notebook shows."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from tests.contract.helpers import labels
from tests.models import DEMO_LABELS, ConvNet, DemoNetwork, Mlp, OrganizedNetwork, RecurrentNetwork

X = torch.rand(5, 5)
LABEL = re.compile(r"\b[a-z][a-z0-9]*(?:_[a-z0-9]+)*?_\d+_\d+(?::\d+)?\b")
TIME = re.compile(r"\d(?:\.\d+)?(?:[eE][+-]?\d+)?\s*(?:s|ms|µs|us|ns)\b")
SIZE = re.compile(r"\d(?:\.\d+)?\s*(?:B|KB|kB|KiB|MB|MiB|bytes)\b")


def test_the_summary_has_all_its_parts() -> None:
    text = str(endoscope.trace(DemoNetwork(), X))
    assert "DemoNetwork" in text
    assert "feedforward" in text.lower() or "feed-forward" in text.lower()
    assert "branch" in text.lower()
    assert re.search(r"\b30\b", text), "30 parameters"
    assert re.search(r"\b1[12]\b", text), "11 tensors, or 12 with the buffer"
    assert TIME.search(text)
    assert SIZE.search(text)
    assert "relu_module" in text
    assert "fc" in text
    assert all(label in text for label in DEMO_LABELS)


def test_the_summary_of_a_recurrent_model() -> None:
    text = str(endoscope.trace(RecurrentNetwork(), X))
    assert "recurrent" in text.lower()
    assert "3" in text
    assert all(f"linear_1_1:{number}" in text for number in (1, 2, 3))


def test_the_summary_nests_modules() -> None:
    text = str(endoscope.trace(OrganizedNetwork(), X))
    outer = next(line for line in text.splitlines() if "submodule1" in line and "submodule2" not in line)
    inner = next(line for line in text.splitlines() if "submodule2" in line)
    assert len(inner) - len(inner.lstrip()) > len(outer) - len(outer.lstrip())


@pytest.mark.parametrize(
    "model", [DemoNetwork(), RecurrentNetwork(), OrganizedNetwork()], ids=["demo", "loop", "nested"]
)
def test_every_label_in_print_can_be_looked_up(model: nn.Module) -> None:
    trace = endoscope.trace(model, X)
    shown = set(LABEL.findall(str(trace)))
    for op in trace.ops:
        shown |= set(LABEL.findall(str(op)))
    assert set(labels(trace.ops)) <= shown
    for label in shown:
        assert label in str(trace[label])


def test_one_op_in_full() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    op = trace["linear_1_3"]
    text = str(op)
    assert "linear_1_3" in text
    assert re.search(r"5\s*[,x×]\s*5", text)
    assert "float32" in text
    assert "relu_1_2" in text
    assert "relu_2_4" in text
    assert "fc" in text
    assert "fc.weight" in text or "(5, 5)" in text
    assert "models.py" in text
    assert str(op.source.line) in text
    assert TIME.search(text)
    assert SIZE.search(text)
    assert "AddmmBackward" in text


def test_one_op_shows_its_value() -> None:
    trace = endoscope.trace(lambda x: x * 2, torch.tensor([[617.0, 1.0]]))
    assert "1234" in str(trace["mul_1"])


def test_one_op_says_how_it_can_be_looked_up() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    text = str(trace["linear_1_3"])
    for key in ("linear_1", "fc", "3", "-8"):
        assert re.search(rf"(?<![\w.]){re.escape(key)}(?![\w.])", text), key


def test_one_pass_of_a_layer_says_which() -> None:
    text = str(endoscope.trace(RecurrentNetwork(), X)["linear_1_1:2"])
    assert "linear_1_1:2" in text
    assert re.search(r"2\s*(?:/|of)\s*3", text)
    assert "fc:2" in text
    assert "mul_1_2" in text


def test_printing_what_was_not_kept_works() -> None:
    trace = endoscope.trace(DemoNetwork(), X, save="none")
    assert "linear_1_3" in str(trace["linear_1_3"])
    assert "float32" in str(trace["linear_1_3"])
    assert all(label in str(trace) for label in DEMO_LABELS)


def test_printing_what_was_overwritten_since_works() -> None:
    trace = endoscope.trace(lambda x: x * 2, X)
    trace.result.add_(777.25)
    text = "\n".join(line for line in str(trace["mul_1"]).splitlines() if "Cost:" not in line)  # has any digits
    assert "mul_1_1" in text
    assert "777" not in text
    assert "778" not in text


@pytest.mark.parametrize(
    "target",
    [
        lambda x: x > 0,
        lambda x: torch.complex(x, x),
        lambda x: x.to_sparse(),
        lambda x: x.max(dim=0),
        lambda x: x[:0],
        lambda x: x.sum(),
        lambda x: x / 0 - x / 0,
        lambda x: x.bfloat16(),
        lambda x: {"nothing": None},
    ],
    ids=["bool", "complex", "sparse", "several", "empty", "scalar", "nan", "bfloat16", "no tensor"],
)
def test_odd_values_can_be_printed(target: Any) -> None:
    trace = endoscope.trace(target, X)
    assert all(op.label in str(op) for op in trace.ops)
    assert "input_1_0" in str(trace)
    assert "input_1_0" in trace._repr_html_()


def test_parameters_buffers_and_ends_can_be_printed() -> None:
    trace = endoscope.trace(DemoNetwork(), X)
    for op in (*trace.parameters, *trace.buffers, *trace.inputs, *trace.outputs):
        assert op.label in str(op)


def test_a_big_value_is_shortened() -> None:
    trace = endoscope.trace(lambda x: x * 2, torch.rand(300, 300))
    assert len(str(trace["mul_1"])) < 20_000
    assert len(repr(trace["mul_1"])) < 20_000


def test_html_for_notebooks() -> None:
    trace = endoscope.trace(ConvNet(), torch.rand(1, 1, 8, 8))
    page, card = trace._repr_html_(), trace["conv2d_1"]._repr_html_()
    assert "ConvNet" in page
    assert all(label in page for label in labels(trace.ops))
    assert "conv2d_1_1" in card
    assert "features.0" in card
    assert "<" in page
    assert "<" in card
    assert page.count("<table") == page.count("</table")
    assert page.count("<div") == page.count("</div")


def test_html_is_escaped() -> None:
    model = nn.Sequential()
    model.add_module("<b>bold</b>", nn.ReLU())
    trace = endoscope.trace(model, X)
    assert trace["<b>bold</b>"].type == "relu"
    assert "<b>bold</b>" not in trace._repr_html_()
    assert "&lt;b&gt;bold" in trace._repr_html_()
    assert "<lambda>" not in endoscope.trace(lambda x: x * 2, X)["mul_1"]._repr_html_()


def test_printing_touches_nothing() -> None:
    model = Mlp()
    x = X.clone().requires_grad_()
    trace = endoscope.trace(model, x)
    state = torch.get_rng_state()
    before = trace["relu_1"].value.clone()
    str(trace), repr(trace), [str(op) for op in trace.ops], trace._repr_html_()
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(trace["relu_1"].value, before)
    trace.result.sum().backward()
    assert x.grad is not None


def test_the_summary_of_a_function_names_it() -> None:
    def my_little_function(x: Tensor) -> Tensor:
        return x * 2

    assert "my_little_function" in str(endoscope.trace(my_little_function, X))


def test_the_report_can_be_printed() -> None:
    text = str(endoscope.validate(Mlp(), X))
    assert len(text) > 20
    assert "ok" in text.lower() or "hold" in text.lower() or "proven" in text.lower()
