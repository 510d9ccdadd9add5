"""What can be traced, how its inputs are given, and how inputs and outputs appear in the graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.errors import EndoscopeError
from tests.contract.helpers import ancestors, computed, identical, labels, only, types
from tests.models import (
    Mlp,
    NestedOutputs,
    Pair,
    Prediction,
    SumOfList,
    TwoInputs,
    scaled_sum,
)

A = torch.arange(1.0, 6.0)
B = torch.arange(2.0, 7.0)


def test_a_module_with_one_tensor() -> None:
    model, x = Mlp(), torch.randn(2, 5)
    trace = endoscope.trace(model, x)
    assert types(computed(trace)) == ["linear", "relu", "linear"]
    assert identical(trace.result, model(x))


def test_a_plain_function() -> None:
    trace = endoscope.trace(scaled_sum, (A, B))
    assert labels(trace.ops) == ["input_1_0", "input_2_1", "add_1_2", "mul_1_3", "output_1_4"]
    assert identical(trace.result, scaled_sum(A, B))


def test_a_lambda_and_a_bound_method() -> None:
    model = Mlp()
    assert identical(endoscope.trace(lambda x: x * 2, A).result, A * 2)
    assert identical(endoscope.trace(model.forward, A).result, model(A))


def test_a_tuple_is_positional() -> None:
    trace = endoscope.trace(TwoInputs(), (A, B, 3.0))
    assert identical(trace.result, A / B * 3.0)
    assert [op.kind for op in trace.inputs] == ["input", "input"]
    assert identical(trace.inputs[0].value, A)
    assert identical(trace.inputs[1].value, B)


def test_a_dict_is_keywords() -> None:
    trace = endoscope.trace(TwoInputs(), {"b": B, "a": A, "scale": 2.0})
    assert identical(trace.result, A / B * 2.0)
    assert len(trace.inputs) == 2


def test_keyword_inputs_are_recognisable_by_name() -> None:
    trace = endoscope.trace(lambda *, numerator, divisor: numerator / divisor, {"numerator": A, "divisor": B})
    by_name = {name: op for op in trace.inputs for name in ("numerator", "divisor") if name in str(op)}
    assert identical(by_name["numerator"].value, A)
    assert identical(by_name["divisor"].value, B)


def test_no_inputs_at_all() -> None:
    trace = endoscope.trace(lambda: torch.ones(3) * 2, ())
    assert identical(trace.result, torch.full((3,), 2.0))
    assert len(trace.inputs) == 0
    assert len(trace.outputs) == 1


@pytest.mark.parametrize(
    ("inputs", "kind"),
    [
        (([A, B],), list),
        (((A, B),), tuple),
        ([A, B], list),
        ({"items": [A, B]}, list),
        ({"items": (A, B)}, tuple),
        (({"a": A, "b": B},), dict),
    ],
    ids=[
        "list in tuple",
        "tuple in tuple",
        "bare list",
        "list by keyword",
        "tuple by keyword",
        "dict in tuple",
    ],
)
def test_a_collection_as_one_argument_stays_one_argument(inputs: Any, kind: type) -> None:
    model = SumOfList()
    trace = endoscope.trace(model, inputs)
    assert model.seen is kind
    assert identical(trace.result, A + B)
    assert len(trace.inputs) == 2
    assert {op.label for op in trace.inputs} <= ancestors(trace.outputs[0])


def test_the_model_gets_the_very_objects_that_were_passed() -> None:
    seen: list[Any] = []

    def target(items: list[Tensor], option: dict[str, Any]) -> Tensor:
        seen.extend([items, items[0], option])
        return items[0] * 2

    items, option = [A], {"deep": [B]}
    endoscope.trace(target, (items, option))
    assert seen[0] is items
    assert seen[1] is A
    assert seen[2] is option


def test_inputs_deep_inside_containers_know_their_path() -> None:
    def target(batch: dict[str, Any]) -> Tensor:
        return batch["ids"] + batch["pair"].left + batch["pair"].right + batch["guess"].extras["parts"][1]

    batch = {
        "ids": A,
        "pair": Pair(left=A + 1, right=B),
        "guess": Prediction(score=torch.ones(()), extras={"parts": [B + 1, A * 10]}),
    }
    trace = endoscope.trace(target, (batch,))
    shown = [str(op) for op in trace.inputs]
    assert any("ids" in text for text in shown)
    assert any("pair" in text and "left" in text for text in shown)
    assert any("pair" in text and "right" in text for text in shown)
    part = [op for op in trace.inputs if "extras" in str(op) and "parts" in str(op)]
    assert any(identical(op.value, A * 10) for op in part)
    assert identical(trace.result, target(batch))


def test_outputs_deep_inside_containers_know_their_path() -> None:
    trace = endoscope.trace(NestedOutputs(), A)
    assert isinstance(trace.result["best"], Prediction)
    assert isinstance(trace.result["pair"], Pair)
    assert [op.kind for op in trace.outputs] == ["output"] * 5
    by_path = {word: op for op in trace.outputs for word in ("score", "parts", "left", "right") if word in str(op)}
    assert identical(by_path["score"].value, A.sum())
    assert identical(by_path["left"].value, A.exp())
    assert identical(by_path["right"].value, A.neg())
    parts = [op for op in trace.outputs if "parts" in str(op)]
    assert {op.parents[0].type for op in parts} == {"mul", "add"}


def test_hugging_face_outputs_know_their_fields() -> None:
    from transformers.modeling_outputs import BaseModelOutput

    def target(x: Tensor) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=x * 2, hidden_states=(x + 1, x - 1))

    trace = endoscope.trace(target, A)
    assert isinstance(trace.result, BaseModelOutput)
    assert len(trace.outputs) == 3
    last = [op for op in trace.outputs if "last_hidden_state" in str(op)]
    assert len(last) == 1
    assert identical(last[0].value, A * 2)
    states = [op for op in trace.outputs if "hidden_states" in str(op)]
    assert {op.parents[0].type for op in states} == {"add", "sub"}


def test_an_output_hangs_on_the_op_that_made_it() -> None:
    trace = endoscope.trace(Mlp(), A)
    (output,) = trace.outputs
    assert labels(output.parents) == ["linear_2_3"]
    assert identical(output.value, trace["linear_2"].value)
    assert tuple(output.shape) == (5,)


def test_an_input_returned_as_it_is() -> None:
    trace = endoscope.trace(lambda x: x, A)
    assert trace.result is A
    assert labels(trace.outputs[0].parents) == ["input_1_0"]
    assert trace.complete is True


def test_one_tensor_in_two_places_shows_both() -> None:
    def target(x: Tensor) -> dict[str, Tensor]:
        y = x * 2
        return {"last_state": y, "every_state": y}

    trace = endoscope.trace(target, A)
    assert trace.result["last_state"] is trace.result["every_state"]
    shown = " ".join(str(op) for op in trace.outputs)
    assert "last_state" in shown
    assert "every_state" in shown
    assert {label for op in trace.outputs for label in labels(op.parents)} == {"mul_1_1"}


def test_one_tensor_given_in_two_places_shows_both() -> None:
    trace = endoscope.trace(lambda query, key: query * key, {"query": A, "key": A})
    shown = " ".join(str(op) for op in trace.inputs)
    assert "query" in shown
    assert "key" in shown
    assert identical(trace.result, A * A)


def test_an_input_that_is_never_used_is_still_an_input() -> None:
    trace = endoscope.trace(lambda used, unused: used * 2, (A, B))
    assert len(trace.inputs) == 2
    assert trace.inputs[1].label not in ancestors(trace.outputs[0])


def test_results_that_are_no_tensors() -> None:
    trace = endoscope.trace(lambda x: (x * 2, None, "text", 3), A)
    assert trace.result[1:] == (None, "text", 3)
    assert len(trace.outputs) == 1


def test_the_result_is_live() -> None:
    model, x = Mlp(), torch.randn(2, 5)
    endoscope.trace(model, x).result.sum().backward()
    traced = [p.grad.clone() for p in model.parameters() if p.grad is not None]
    model.zero_grad()
    model(x).sum().backward()
    plain = [p.grad for p in model.parameters() if p.grad is not None]
    assert len(traced) == 4
    assert all(identical(a, b) for a, b in zip(traced, plain, strict=True))


def test_parameters_and_buffers_are_nodes() -> None:
    model = nn.BatchNorm1d(5).eval()
    trace = endoscope.trace(model, torch.randn(3, 5))
    assert {op.label for op in trace.parameters} == {"weight", "bias"}
    assert {op.kind for op in trace.parameters} == {"parameter"}
    assert {"running_mean", "running_var"} <= {op.label for op in trace.buffers}
    assert {op.kind for op in trace.buffers} == {"buffer"}
    norm = only(trace, "batch_norm")
    assert {"weight", "bias", "running_mean", "running_var"} <= set(labels(norm.parents))
    assert norm.label in labels(trace["weight"].children)
    assert identical(trace["running_var"].value, model.running_var)


def test_a_tensor_from_elsewhere_is_a_constant() -> None:
    outside = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    trace = endoscope.trace(lambda x: x * outside, A)
    constants = [op for op in only(trace, "mul").parents if op.kind == "constant"]
    assert len(constants) == 1
    assert identical(constants[0].value, outside)
    assert constants[0].label in labels(trace.constants)
    assert constants[0].label not in labels(trace.ops)
    assert trace.complete is True


def test_kinds() -> None:
    trace = endoscope.trace(lambda x: x * torch.ones(5), A)
    assert [op.kind for op in trace.ops] == ["input", "generated", "computed", "output"]


def test_the_general_form_takes_any_call() -> None:
    model = TwoInputs()
    with endoscope.tracing(model) as trace:
        result = model(A, b=B, scale=2.0)
    assert identical(result, A / B * 2.0)
    assert types(computed(trace)) == ["div", "mul"]
    assert len(trace.inputs) == 2
    assert len(trace.outputs) == 1


def test_the_general_form_takes_several_calls_and_backward() -> None:
    model, x = Mlp(), torch.randn(2, 5)
    target = torch.randn(2, 5)
    with endoscope.tracing(model) as trace:
        middle = model(x)
        loss = nn.functional.mse_loss(model(middle), target)
        loss.backward()
    once, again = trace["first:1"], trace["first:2"]
    assert (once.layer, once.pass_, again.pass_) == (again.layer, 1, 2)
    assert once.label in ancestors(again)
    assert again.label in ancestors(only(trace, "mse_loss"))
    gradient = model.first.weight.grad
    assert gradient is not None
    model.zero_grad()
    nn.functional.mse_loss(model(model(x)), target).backward()
    assert model.first.weight.grad is not None
    assert identical(gradient, model.first.weight.grad)


def test_the_general_form_sees_code_around_the_model() -> None:
    model = Mlp()
    with endoscope.tracing(model) as trace:
        y = model(A * 2).tanh()
    tanh = only(trace, "tanh")
    assert tanh.modules == ()
    assert identical(tanh.value, y)
    assert only(trace, "mul").label in ancestors(tanh)


def test_the_general_form_takes_the_same_options() -> None:
    model = Mlp()
    with endoscope.tracing(model, save="type:relu", gradients=True, seed=3) as trace:
        model(A.clone().requires_grad_()).sum().backward()
    assert [op.label for op in trace.ops if op.type == "relu"] == [trace[0].label]
    assert trace[0].gradient is not None


def test_after_the_block_nothing_more_is_recorded() -> None:
    model = Mlp()
    with endoscope.tracing(model) as trace:
        model(A)
    before = len(trace)
    model(A)
    torch.ones(3).add(1)
    assert len(trace) == before


@pytest.mark.parametrize("target", [3, "model", None, torch.ones(2)])
def test_a_target_that_cannot_be_called_is_refused_with_a_message(target: Any) -> None:
    with pytest.raises((EndoscopeError, TypeError)) as caught:
        endoscope.trace(target, A)
    assert type(target).__name__ in str(caught.value)
