"""Which values are kept: decided early where possible, let go of again where it must wait."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.capture.record.keeping import make_keeper
from endoscope.errors import BadArgument, NothingMatches, ValueNotKept
from tests.models import DemoNetwork, Mlp, RecurrentNetwork

X = torch.rand(2, 5)


class Nested(nn.Module):
    """Two blocks of two layers, to have something inside something."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Mlp(), Mlp()])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x) * 2
        return x


def kept(model: nn.Module, save: Any) -> list[str]:
    trace = endoscope.trace(model, X, save=save)
    found = [op.label for op in trace.everything() if op.kept]
    for op in trace.everything():
        if op.kept:
            assert op.value is not None
        else:
            with pytest.raises(ValueNotKept):
                op.value
    return found


def by_hand(model: nn.Module, chosen: Any) -> list[str]:
    """The slow way: keep everything and look at the finished operations."""
    trace = endoscope.trace(model, X)
    return [op.label for op in trace.everything() if chosen(op)]


@pytest.mark.parametrize(
    ("save", "chosen"),
    [
        ("none", lambda op: False),
        ("type:linear", lambda op: op.type == "linear"),
        ("type:*e*", lambda op: "e" in op.type),
        ("kind:parameter", lambda op: op.kind == "parameter"),
        ("blocks.0.first.weight", lambda op: op.label == "blocks.0.first.weight"),
        ("linear_1", lambda op: op.layer.startswith("linear_1_")),
        ("linear_*", lambda op: op.type == "linear"),
        ("blocks.1", lambda op: op.label == "linear_4_7"),
        ("blocks.*", lambda op: "linear" in op.label or op.label.startswith("blocks.")),
        ("in:blocks.1", lambda op: "blocks.1" in op.modules),
        (["type:relu", "type:mul"], lambda op: op.type in ("relu", "mul")),
        (lambda op: op.type == "relu", lambda op: op.type == "relu"),
        (lambda op: op.label == "relu_2_5", lambda op: op.label == "relu_2_5"),
        (lambda op: op.shape == (2, 7), lambda op: op.shape == (2, 7)),
        (lambda op: "blocks.0" in op.modules, lambda op: "blocks.0" in op.modules),
    ],
)
def test_kept_is_what_the_finished_trace_would_select(save: Any, chosen: Any) -> None:
    assert kept(Nested(), save) == by_hand(Nested(), chosen)


def test_a_pass_of_a_layer() -> None:
    assert kept(RecurrentNetwork(), "linear_1:2") == ["linear_1_1:2"]
    assert kept(RecurrentNetwork(), "fc:3") == ["linear_1_1:3"]


def test_everything_needs_no_keeper() -> None:
    assert make_keeper("all") is None


@pytest.mark.parametrize("save", [3, None, 2.5, {"type:relu": 1}])
def test_what_cannot_mean_anything(save: Any) -> None:
    with pytest.raises(BadArgument, match="cannot say what to keep"):
        make_keeper(save)


@pytest.mark.parametrize("save", ["", ["type:relu", " "], "tipe:relu"])
def test_a_bad_pattern_is_refused_before_anything_runs(save: Any) -> None:
    ran = []
    with pytest.raises(BadArgument):
        endoscope.trace(lambda x: ran.append(1), X, save=save)
    assert not ran


def test_nothing_matches() -> None:
    with pytest.raises(NothingMatches) as caught:
        endoscope.trace(DemoNetwork(), X, save=["type:relu", "linaer_1"])
    assert "'linaer_1' matches no operation of DemoNetwork" in str(caught.value)
    assert "linear_1" in str(caught.value).split("Nearest", 1)[1]
    assert "'type:relu'" not in str(caught.value)


def test_memory_is_let_go_of_while_the_model_runs() -> None:
    """Only the one value that was asked for is alive at the end."""
    trace = endoscope.trace(Nested(), X, save="relu_2")
    assert len(trace.recorder.kept) == 1


def test_an_exception_in_the_users_function_reaches_the_user() -> None:
    def choose(op: Any) -> bool:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        endoscope.trace(Mlp(), X, save=choose)


def test_values_are_those_of_the_moment() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2
        y.add_(1)
        return y

    trace = endoscope.trace(target, X, save=["type:mul", "type:add"])
    assert torch.equal(trace["mul_1"].value, X * 2)
    assert torch.equal(trace["add_1"].value, X * 2 + 1)


# ---- combinations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("save", "chosen"),
    [
        ("type:linear & in:blocks.1", lambda op: op.type == "linear" and "blocks.1" in op.modules),
        ("type:linear & !in:blocks.1", lambda op: op.type == "linear" and "blocks.1" not in op.modules),
        ("type:relu | blocks.1", lambda op: op.type == "relu" or "blocks.1" in op.keys),
        ("type:mul & child_of(blocks.0)", lambda op: op.type == "mul" and "blocks.0" in op.parents[0].keys),
        ("child_of(type:relu)", lambda op: any(p.type == "relu" for p in op.parents)),
        ("parent_of(type:relu)", lambda op: any(c.type == "relu" for c in op.children)),
        ("ancestor_of(relu_1)", lambda op: any("relu_1" in d.keys for d in op.relations.descendants)),
        ("descendant_of(relu_2)", lambda op: any("relu_2" in a.keys for a in op.relations.ancestors)),
        ("sibling_of(blocks.0.first.weight)", None),
        ("!type:*", None),
        ("kind:computed", lambda op: op.kind == "computed"),
        ("kind:computed & !type:linear", lambda op: op.kind == "computed" and op.type != "linear"),
        (["kind:output", "type:relu & child_of(type:linear)"], lambda op: op.kind == "output" or op.type == "relu"),
    ],
    ids=lambda value: "" if callable(value) else str(value),
)  # fmt: skip
def test_combinations_keep_what_the_finished_trace_would_select(save: Any, chosen: Any) -> None:
    if chosen is None:
        with pytest.raises(NothingMatches, match="Each part of it matches something, but nothing fits the whole"):
            kept(Nested(), save)
    else:
        assert kept(Nested(), save) == by_hand(Nested(), chosen)


def test_what_cannot_match_is_not_held_meanwhile() -> None:
    """Parents and types are known at once, so only the poolings behind a ReLU are ever held."""
    held: list[int] = []

    class Watching(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            for _ in range(20):
                x = torch.tanh(torch.relu(x)).sin()
            held.append(len(trace.recorder.kept) - sources)
            return x

    model = Watching()
    with endoscope.tracing(model, save="type:tanh & child_of(type:relu)") as trace:
        sources = 1  # the input is alive anyway
        model(X)
    assert held == [20]
    assert [op.type for op in trace.kept] == ["tanh"] * 20


def test_a_module_that_only_hands_on_is_found_by_its_name() -> None:
    model = nn.Sequential(nn.Linear(5, 5), nn.Identity(), nn.ReLU())
    assert kept(model, "1") == kept(model, "0") == ["linear_1_1"]
    assert kept(model, "1 & type:linear") == ["linear_1_1"]
    assert kept(nn.Sequential(nn.Linear(5, 5), nn.Dropout()).eval(), "1") != []
    assert kept(model, "child_of(1)") == kept(model, "type:relu & child_of(1)") == ["relu_1_2"]


def test_a_module_that_hands_on_its_input_after_using_it() -> None:
    class Probe(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            torch.relu(x)
            return x

    model = nn.Sequential(nn.Linear(5, 5), Probe(), nn.Tanh())
    assert kept(model, "type:relu & child_of(1)") == ["relu_1_2"]


def test_tensors_that_are_generated_or_lead_nowhere() -> None:
    def target(x: Tensor) -> Tensor:
        count = torch.zeros(3)
        count.add_(1)
        return x + torch.ones(5)

    def found(save: str) -> list[str]:
        return [op.label for op in endoscope.trace(target, X, save=save).everything() if op.kept]

    assert found("orphan_add_1") == ["orphan_add_1"]
    assert found("kind:generated") == ["ones_1_1", "orphan_zeros_1"]


def test_a_part_that_matches_nothing_is_named() -> None:
    with pytest.raises(NothingMatches) as caught:
        endoscope.trace(DemoNetwork(), X, save="type:relu & child_of(type:liner)")
    message = str(caught.value)
    assert "'type:relu & child_of(type:liner)' matches no operation of DemoNetwork" in message
    assert "Nothing in it matches 'type:liner'. Nearest: type:linear" in message


def test_a_pattern_that_cannot_be_read_is_refused_before_anything_runs() -> None:
    ran: list[int] = []
    with pytest.raises(BadArgument, match="cannot be read"):
        endoscope.trace(lambda x: ran.append(1), X, save="type:relu & child_of(")
    assert not ran


def test_gradients_of_what_a_combination_keeps() -> None:
    model = Nested()
    trace = endoscope.trace(model, X, save="type:relu & child_of(type:linear)", gradients=True)
    trace.result.sum().backward()
    full = endoscope.trace(model, X, gradients=True)
    full.result.sum().backward()
    for op in trace.kept:
        assert torch.equal(op.gradient, full[op.label].gradient)
    assert len(trace.kept) == 2
