"""Control flow of real models, as the recorder hears it."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.analysis.branching.conditionals import Test, Unlocated


def told(model: Any, x: Any) -> list[str]:
    trace = endoscope.trace(model, x)
    lines = []
    for found in trace.decisions_by_node:
        types = [" ".join(trace.raw(n).facts.type for n in part) for part in (found.test_ops, found.branch_ops)]
        kind = found.test.kind if isinstance(found.test, Test) else "?"
        lines.append(f"{kind} {found.value} -> {found.branch}; {types[0]} | {types[1]}".strip())
    return lines


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.fc(x)) + 1


class Organised(nn.Module):
    """The poster's third example: an `if` in front of nested modules."""

    def __init__(self) -> None:
        super().__init__()
        self.block, self.after = Inner(), Inner()

    def forward(self, x: Tensor) -> Tensor:
        if torch.sum(x) > 0:
            x = self.block(x * 2)
        else:
            x = x + 1
        return self.after(x)


def test_if_with_modules() -> None:
    assert told(Organised(), torch.ones(2, 5)) == ["if True -> then; sum gt | mul linear relu add"]
    assert told(Organised(), -torch.ones(2, 5)) == ["if False -> else; sum gt | add"]


def test_tensor_while() -> None:
    def f(x: Tensor) -> Tensor:
        while x.sum() < 4:
            x = x * 2
        return x

    assert told(f, torch.tensor([1.5])) == [
        "while True -> body; sum lt | mul",
        "while True -> body; sum lt | mul",
        "while False -> nothing; sum lt |",
    ]


def test_item_in_a_comparison() -> None:
    def f(x: Tensor, threshold: float = 2.0) -> Tensor:
        if x.max().item() > 1:
            x = x.sin()
        if x.sum().item() > threshold:
            return x + 1
        return x * 2

    assert told(f, torch.tensor([0.1, 3.0])) == ["if 3.0 -> then; max | sin", f"if {A} -> unknown; sum |"]


A = torch.tensor([0.1, 3.0]).sin().sum().item()


@pytest.mark.parametrize("kept", ["bool(x.any())", "x.any().item()", "torch.is_nonzero(x.any())"])
def test_kept_in_a_variable(kept: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body = f"    ok = {kept}\n    y = x * 2\n    if not ok:\n        y = y + 1\n    return y\n"
    (tmp_path / "kept_model.py").write_text(f"import torch\n\ndef f(x):\n{body}")
    monkeypatch.syspath_prepend(tmp_path)
    sys.modules.pop("kept_model", None)
    import kept_model  # type: ignore[import-not-found]

    assert told(kept_model.f, torch.zeros(3)) == ["if False -> then; any | add"]


def test_two_tensors_make_one_decision() -> None:
    def f(x: Tensor) -> Tensor:
        y = x * 1
        if torch.equal(x, y) and torch.allclose(x + 0, y):
            y = y + 1
        return y

    trace = endoscope.trace(f, torch.ones(2))
    found = trace.decisions_by_node
    assert [len(d.steering) for d in found] == [2, 2]
    assert [d.branch for d in found] == ["then", "then"]
    assert [d.settled for d in found] == [False, True]


def test_contains_any_all_and_numbers() -> None:
    def f(x: Tensor) -> Tensor:
        if 3.0 in x:
            x = x + 1
        if any(row > 3 for row in x):
            x = x * 2
        for _ in range(int(x[0])):
            x = x.sin()
        return x

    lines = told(f, torch.tensor([2.0, 3.0]))
    assert lines[0].startswith("if True -> then;") and lines[0].endswith("| add")
    assert [line.split(";")[0] for line in lines[1:3]] == ["if False -> then", "if True -> then"]
    assert lines[3].startswith("for 6 -> body;") and lines[3].endswith("| " + " ".join(["sin"] * 6))


def test_a_test_inside_torch_is_not_one_of_yours() -> None:
    def f(x: Tensor) -> Tensor:
        normal = torch.distributions.Normal(x, x.exp(), validate_args=True)
        return normal.mean * 2

    found = endoscope.trace(f, torch.zeros(2)).decisions_by_node
    assert found
    for decision in found:
        assert isinstance(decision.test, Unlocated)
        assert "used inside torch.distributions.Normal()" in decision.test.reason


def test_early_exit() -> None:
    class EarlyExit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Inner() for _ in range(3)])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x)
                if x.numel() * x.amax() > 1e6:
                    return x.sin()
                x = x.abs() * 1e9
            return x

    lines = told(EarlyExit(), torch.ones(1, 5))
    assert lines == ["if False -> nothing; amax mul gt |", "if True -> then; amax mul gt | sin"]
