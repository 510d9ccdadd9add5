"""One fact about query, key and value is told once; causes and remedies speak only of what the model has."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from endoscope.findings.finding import Finding
from tests.findings.planted import FAULTS
from tests.findings.runs import classifier, scaled, train

WIDTH, HEADS = 8, 2


class Attention(nn.Module):
    """Its layers have names that say nothing."""

    def __init__(self, by_hand: bool) -> None:
        super().__init__()
        self.by_hand = by_hand
        self.one, self.two, self.three, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (self._heads(layer(x)) for layer in (self.one, self.two, self.three))
        if self.by_hand:
            mixed = torch.softmax(q @ k.transpose(-1, -2) / 2.0, -1) @ v
        else:
            mixed = functional.scaled_dot_product_attention(q, k, v)
        return x + self.out(mixed.transpose(1, 2).reshape(x.shape))

    def _heads(self, x: Tensor) -> Tensor:
        return x.view(len(x), -1, HEADS, WIDTH // HEADS).transpose(1, 2)


class Small(nn.Module):
    """Words of eight numbers, an attention or three branches over them, and three classes."""

    def __init__(self, middle: nn.Module) -> None:
        super().__init__()
        self.embed, self.middle, self.norm, self.head = (
            nn.Linear(1, WIDTH),
            middle,
            nn.LayerNorm(WIDTH),
            nn.Linear(WIDTH, 3),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.middle(self.embed(x[:, :, None]))).mean(1))


class Branches(nn.Module):
    """Three layers with one reader, and no attention."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.one(x)) + torch.relu(self.two(x)) * torch.relu(self.three(x))


def found(path: Path, check: str) -> list[Finding]:
    return [one for one in endoscope.diagnose(path) if one.check == check]


def with_large(middle: Attention | Branches, folder: Path) -> list[Finding]:
    for layer in (middle.one, middle.two, middle.three):
        scaled(layer, 30.0)
    return found(train(folder, Small(middle), steps=6), "bad_initialisation")


@pytest.mark.parametrize("by_hand", [True, False])
def test_query_key_and_value_are_one_finding_that_names_all_three(by_hand: bool, tmp_path: Path) -> None:
    [one] = with_large(Attention(by_hand), tmp_path)
    assert one.node == "middle.one.weight"
    assert one.also[:2] == ("middle.two.weight", "middle.three.weight")
    assert "read together with it: `middle.two.weight`, `middle.three.weight`." in one.detail


def test_branches_that_are_no_attention_are_told_apart(tmp_path: Path) -> None:
    seen = with_large(Branches(), tmp_path)
    assert len(seen) == 3 and not any("read together" in one.detail for one in seen)


def test_only_the_sick_one_of_the_three_is_named(tmp_path: Path) -> None:
    middle = Attention(by_hand=False)
    scaled(middle.two, 30.0)
    [one] = found(train(tmp_path, Small(middle), steps=6), "bad_initialisation")
    assert one.node == "middle.two.weight" and "read together" not in one.detail
    assert not {"middle.one.weight", "middle.three.weight"} & set(one.also)


def advice(one: Finding) -> str:
    return " ".join((*one.causes, *one.remedies))


def test_other_activations_are_advised_only_where_there_are_some(tmp_path: Path) -> None:
    [sigmoids, *_] = found(FAULTS["vanishing_gradient"][0](tmp_path / "sigmoids"), "vanishing_gradient")
    assert "Use ReLU" in advice(sigmoids) and "Add normalisation layers." in sigmoids.remedies
    assert "LSTM" not in advice(sigmoids) and "recurrence" not in advice(sigmoids)
    linear = scaled(nn.Sequential(*[nn.Linear(8, 8) for _ in range(9)], nn.LayerNorm(8), nn.Linear(8, 3)), 0.1)
    [plain, *_] = found(train(tmp_path / "linear", linear, steps=12), "vanishing_gradient")
    assert plain.causes and plain.remedies
    assert "ReLU" not in advice(plain) and "sigmoid" not in advice(plain)
    assert "normalisation" not in advice(plain)


def test_dead_units_of_a_normalised_network(tmp_path: Path) -> None:
    model = classifier(nn.LayerNorm(16), nn.ReLU())
    with torch.no_grad():
        model[1].bias.fill_(-30.0)
    [one, *_] = found(train(tmp_path, model, steps=12), "dead_units")
    assert "Use LeakyReLU, GELU or SiLU instead of ReLU." in one.remedies
    assert "Put a normalisation before the activation." not in one.remedies


def test_evaluation_without_batch_norm_says_nothing_of_it(tmp_path: Path) -> None:
    [with_it, *_] = found(FAULTS["train_eval_mismatch"][0](tmp_path / "with"), "train_eval_mismatch")
    assert "batch normalisation" in advice(with_it)
    model = classifier(nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    chance = torch.Generator().manual_seed(0)
    with endoscope.Run(tmp_path / "without", trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(12):
            is_training = number % 2 == 0
            inputs = torch.randn(32, 8, generator=chance) * (1.0 if is_training else 40.0)
            labels = torch.randint(0, 3, (32,), generator=chance)
            with run.step(number, type="train" if is_training else "eval"):
                model.train(is_training)
                optimizer.zero_grad()
                loss = functional.cross_entropy(model(inputs), labels)
                if is_training:
                    loss.backward()
                    optimizer.step()
    [without, *_] = found(Path(run.path), "train_eval_mismatch")
    assert without.causes and without.remedies and "batch normalisation" not in advice(without)


def test_one_sentence_is_the_title_everywhere(tmp_path: Path) -> None:
    [one] = found(FAULTS["saturated"][0](tmp_path), "saturated")
    assert one.title == "`1`: most results of tanh are at the ends of its range"
    assert one.to_dict()["title"] == one.title and str(one).startswith(f"warning: {one.title}. ")
