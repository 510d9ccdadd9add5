"""`endoscope.probe_batch`: planted bugs that let samples of a batch meet, and models in which they do not."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from endoscope.findings.finding import Finding

B, T, F = 6, 5, 4


def batch(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


class Around(nn.Module):
    """A layer, then something, then a layer."""

    def __init__(self, something: Callable[[Tensor], Tensor], size: int = F) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.before, self.after = nn.Linear(size, size), nn.Linear(size, size)
        self.something = something

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.something(self.before(x)))  # type: ignore[no-any-return]


def softmax_over_the_batch(x: Tensor) -> Tensor:
    return functional.softmax(x, dim=0)  # planted


def centred_over_the_batch(x: Tensor) -> Tensor:
    return x - x.mean(dim=0, keepdim=True)  # planted


def scaled_by_the_largest(x: Tensor) -> Tensor:
    return x / x.abs().max()  # planted


def viewed_instead_of_transposed(x: Tensor) -> Tensor:
    y = x.view(T, B, F)
    return y.mean(dim=0)  # planted


def attention_over_the_batch(x: Tensor) -> Tensor:
    weights = functional.softmax(x @ x.t(), dim=-1)  # planted
    return weights @ x


def summed_up(x: Tensor) -> Tensor:
    return x.cumsum(dim=0)  # planted


def in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[0] += y[1]  # planted
    return y


def sorted_by_value(x: Tensor) -> Tensor:
    return x.sort(dim=0).values  # planted


def neighbours(x: Tensor) -> Tensor:
    return torch.cat([x[:1], (x[1:] + x[:-1]) / 2])  # planted


def convolved_along_the_batch(x: Tensor) -> Tensor:
    return functional.conv1d(x.t().unsqueeze(0), torch.ones(F, F, 3), padding=1)[0].t()  # planted


BUGS: list[tuple[Callable[[Tensor], Tensor], Tensor, set[str]]] = [
    (softmax_over_the_batch, batch(B, F), {"softmax"}),
    (centred_over_the_batch, batch(B, F), {"mean"}),
    (scaled_by_the_largest, batch(B, F), {"max", "div"}),
    (viewed_instead_of_transposed, batch(B, T, F), {"mean"}),
    (attention_over_the_batch, batch(B, F), {"matmul", "t"}),
    (summed_up, batch(B, F), {"cumsum"}),
    (in_place, batch(B, F), {"add_", "iadd", "setitem", "add"}),
    (sorted_by_value, batch(B, F), {"sort"}),
    (neighbours, batch(B, F), {"add"}),
    (convolved_along_the_batch, batch(B, F), {"conv1d"}),
]


def errors(findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def planted_line(function: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(n for n, line in enumerate(lines) if "# planted" in line)


@pytest.mark.parametrize(("bug", "inputs", "types"), BUGS, ids=lambda value: getattr(value, "__name__", ""))
def test_bugs_are_found_where_they_are(bug: Callable[[Tensor], Tensor], inputs: Tensor, types: set[str]) -> None:
    found = errors(endoscope.probe_batch(Around(bug), inputs))
    assert found and {finding.check for finding in found} == {"batch_crossing"}
    first = found[0]
    assert first.node.rpartition("_")[0].rpartition("_")[0] in types
    assert first.source.endswith(f"test_batch_probe.py:{planted_line(bug)}")
    assert len(first.samples) >= 2 and first.value > 0 and first.causes and first.remedies


def test_a_view_that_mixed_up_the_order_is_named() -> None:
    found = errors(endoscope.probe_batch(Around(viewed_instead_of_transposed), batch(B, T, F)))
    assert "view_1" in found[0].also[0] and "had no dimension of their own" in found[0].detail


def test_samples_that_only_change_places() -> None:
    found = errors(endoscope.probe_batch(Around(lambda x: x.flip(0)), batch(B, F)))
    assert [finding.title for finding in found] == ["samples change places"] and "flip" in found[0].node


def test_the_wrong_dimension_of_attention() -> None:
    """`batch_first` forgotten: the sequence is taken for the batch."""
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    found = errors(endoscope.probe_batch(layer, batch(B, T, 8)))
    assert "attention" in found[0].node or "bmm" in found[0].node or "matmul" in found[0].node
    assert endoscope.probe_batch(layer, batch(T, B, 8), batch_dim=1) == []


# Models in which nothing crosses


class Heads(nn.Module):
    """Attention by hand: samples are flattened together with heads, and come back."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 4).permute(2, 0, 3, 1, 4).reshape(3, b * 2, t, 4).unbind(0)
        mixed = torch.bmm(torch.softmax(torch.bmm(q, k.transpose(1, 2)), dim=-1), v)
        return mixed.view(b, 2, t, 4).transpose(1, 2).reshape(b, t, 8)


class WithLoss(nn.Module):
    """Returns logits, and a loss over the whole batch, as models of a well-known library do."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(F, 3)

    def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.head(x)
        return {"loss": functional.cross_entropy(logits, labels), "logits": logits}


CLEAN: dict[str, tuple[Any, Any]] = {
    "mlp with dropout": (nn.Sequential(nn.Linear(F, 8), nn.ReLU(), nn.Dropout(), nn.Linear(8, 3)), batch(B, F)),
    "cnn": (
        nn.Sequential(
            nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 3)
        ),
        batch(B, 2, 8, 8),
    ),
    "lstm": (nn.LSTM(F, 8, batch_first=True), batch(B, T, F)),
    "transformer": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), batch(B, T, 8)),
    "flattened heads": (Heads(), batch(B, T, 8)),
    "instance norm": (nn.Sequential(nn.Conv1d(F, 4, 1), nn.InstanceNorm1d(4)), batch(B, F, T)),
    "batch norm in evaluation": (nn.Sequential(nn.Linear(F, 8), nn.BatchNorm1d(8)).eval(), batch(B, F)),
    "embedding": (
        nn.Sequential(nn.Embedding(9, 4), nn.Flatten(), nn.Linear(20, 2)),
        torch.arange(B * T).view(B, T) % 9,
    ),
    "loss over the batch": (WithLoss(), {"x": batch(B, F), "labels": torch.arange(B) % 3}),
    "transposed": (Around(lambda x: x.t().contiguous().t().reshape(-1).view(B, F)), batch(B, F)),
}


@pytest.mark.parametrize("name", CLEAN)
def test_clean_models_have_no_findings(name: str) -> None:
    model, inputs = CLEAN[name]
    assert endoscope.probe_batch(model, inputs) == []


# What is expected, and what hides behind it


def test_batch_norm_in_training_is_expected() -> None:
    found = endoscope.probe_batch(nn.Sequential(nn.Linear(F, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), batch(B, F))
    assert [(one.severity, one.title) for one in found] == [("info", "batch statistics")]
    assert "expected" in found[0].detail


def test_a_bug_behind_batch_norm_is_found() -> None:
    model = nn.Sequential(nn.Linear(F, F), nn.BatchNorm1d(F), Around(softmax_over_the_batch))
    found = endoscope.probe_batch(model, batch(B, F))
    assert [one.severity for one in found] == ["error", "info"] and found[0].node.startswith("softmax")


def test_a_mask_for_all_samples_is_no_sample() -> None:
    def masked(x: Tensor, mask: Tensor) -> Tensor:
        return x @ mask

    x, mask = batch(F, F), torch.ones(F, F).tril()
    assert endoscope.probe_batch(masked, (x, mask)) != []  # as many rows as samples: it cannot be told
    assert endoscope.probe_batch(masked, (x, mask), shared=[mask]) == []


def test_another_path_is_told() -> None:
    def steered(x: Tensor) -> Tensor:
        y = x * 2
        return y.relu() if x[0, 0] > 0 else y.tanh()

    x = batch(B, F).abs()
    x[1:] = -x[1:]
    assert any("another path" in one.detail for one in endoscope.probe_batch(steered, x))


# Left as it was


def test_model_gradients_and_random_states_are_untouched() -> None:
    model = nn.Sequential(nn.Linear(F, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))
    inputs = batch(B, F).requires_grad_()
    model(inputs).sum().backward()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
    given, random = inputs.detach().clone(), torch.get_rng_state()
    endoscope.probe_batch(model, inputs)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    kept = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    assert all(torch.equal(one, other) for one, other in zip(gradients, kept, strict=True))
    assert torch.equal(given, inputs) and torch.equal(random, torch.get_rng_state())
    assert all(module.training for module in model.modules())
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("inputs", "options", "said"),
    [
        (torch.ones(1, F), {}, "has 1 sample along dimension 0"),
        (torch.tensor(1.0), {}, "has a dimension 0"),
        (torch.ones(B, F), {"batch_dim": -1}, "batch_dim=-1"),
    ],
)
def test_mistakes_are_explained(inputs: Tensor, options: dict[str, Any], said: str) -> None:
    with pytest.raises(endoscope.errors.BadArgument, match=said):
        endoscope.probe_batch(nn.Linear(F, F), inputs, **options)
