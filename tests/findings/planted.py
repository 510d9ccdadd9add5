"""One planted fault for each check: name -> (recording, node where it is expected; None: any)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from tests.findings import incomplete, ranks
from tests.findings.runs import blobs, classifier, curve, filled, scaled, train, two_losses

Planted = tuple[Callable[[Path], Path], str | None]
FAULTS: dict[str, Planted] = {}


def fault(check: str, node: str | None = None) -> Callable[[Callable[[Path], Path]], Callable[[Path], Path]]:
    def keep(make: Callable[[Path], Path]) -> Callable[[Path], Path]:
        FAULTS[check] = (make, node)
        return make

    return keep


fault("no_steps")(incomplete.never_called)
fault("lost_steps")(incomplete.full_disk)
fault("lost_parts")(incomplete.another_model)
fault("lost_ranks")(ranks.killed)
fault("ranks_drift_apart", "w")(ranks.drifting)
fault("unsynchronised_gradients", "w")(ranks.unsynchronised)
fault("ranks_see_same_data", "input")(ranks.same_data)
fault("outlying_rank")(ranks.one_bad_shard)
fault("straggler")(ranks.slow)


class Log(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.log()


class Residual(nn.Module):
    """x + factor · f(x)"""

    def __init__(self, width: int, factor: float) -> None:
        super().__init__()
        self.branch = nn.Linear(width, width)
        self.scale = nn.Softshrink(0.0)  # a module of its own, so that what is added has a name
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return x + self.scale(self.factor * self.branch(x))


@fault("nonfinite", "1")
def log_of_zero(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        inputs[5] = -100.0 if step == 6 else inputs[5]
        return inputs, labels

    model = nn.Sequential(filled(nn.Linear(8, 8), weight=torch.eye(8), bias=50.0), Log(), nn.Linear(8, 3))
    return train(folder, model, batches=batches, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4), steps=10)


@fault("dead_units", "1")
def dying_relu(folder: Path) -> Path:
    model = classifier()
    filled(model[0], bias=-30.0)
    return train(folder, model, steps=12)


@fault("vanishing_gradient")
def deep_sigmoids(folder: Path) -> Path:
    layers = [layer for _ in range(9) for layer in (nn.Linear(16, 16), nn.Sigmoid())]
    return train(folder, classifier(nn.Sigmoid(), *layers), steps=12)


@fault("exploding_gradient")
def huge_weights(folder: Path) -> Path:
    model = classifier(nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
    return train(folder, scaled(model, 25.0), optimizer=torch.optim.SGD(model.parameters(), lr=1e-9), steps=12)


@fault("spiking_gradient")
def one_strange_batch(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return (inputs * 300 if step == 18 else inputs), labels

    model = classifier()
    return train(folder, model, batches=batches, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4))


@fault("missing_gradient", "branch.weight")
def detached(folder: Path) -> Path:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.branch, self.head = nn.Linear(8, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.branch(x).detach())

    return train(folder, Model(), steps=6)


@fault("zero_gradient", "0.weight")
def multiplied_by_zero(folder: Path) -> Path:
    class Nothing(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 0.0

    return train(folder, classifier(Nothing()), steps=8)


@fault("unchanged_parameters", "0.weight")
def forgotten(folder: Path) -> Path:
    model = classifier()
    return train(folder, model, optimizer=torch.optim.Adam(model[2].parameters()), steps=8)


@fault("update_ratio")
def large_steps(folder: Path) -> Path:
    model = classifier()
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=60.0), steps=14)


@fault("saturated", "1")
def saturated_tanh(folder: Path) -> Path:
    model = classifier(nn.Tanh())
    return train(folder, scaled(model, 30.0), optimizer=torch.optim.SGD(model.parameters(), lr=1e-4), steps=12)


@fault("scale_range", "0")
def far_too_large(folder: Path) -> Path:
    model = classifier()
    scaled(model[0], 5e3)
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-9), steps=8)


@fault("asymmetric_range", "3")
def activated_last(folder: Path) -> Path:
    model = nn.Sequential(*classifier(), nn.LeakyReLU(0.05), nn.Sigmoid())

    def loss(out: Tensor, labels: Tensor) -> Tensor:
        return functional.binary_cross_entropy(out, functional.one_hot(labels, 3).float())

    return train(folder, model, loss=loss)


@fault("growing_activations")
def growing(folder: Path) -> Path:
    model = classifier()

    def grow(step: int) -> None:
        scaled(model[0], 1.25)

    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-6), before=grow)


@fault("diverging_weights", "0.weight")
def growing_weights(folder: Path) -> Path:
    return growing(folder)


@fault("collapsed_batch")
def ignores_its_input(folder: Path) -> Path:
    model = classifier()
    filled(model[2], weight=torch.randn(3, 16) * 1e-5, bias=torch.tensor([0.5, -0.2, 0.1]))
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-6), steps=8)


@fault("divergence")
def loss_goes_up(folder: Path) -> Path:
    return curve(folder, [1.0 + 0.1 * number for number in range(40)])


@fault("plateau")
def loss_stays(folder: Path) -> Path:
    noise = np.random.default_rng(0).normal(size=60)
    return curve(folder, (2.3 + 0.03 * noise).tolist())


@fault("oscillation")
def loss_jumps(folder: Path) -> Path:
    return curve(folder, [1.0 + 0.6 * (-1) ** number for number in range(40)])


@fault("loss_spike")
def loss_spikes(folder: Path) -> Path:
    noise = np.random.default_rng(0).normal(size=60)
    values = np.exp(-np.arange(60) / 60) + 0.02 * noise
    values[40] *= 9
    return curve(folder, values.tolist())


@fault("zero_loss")
def nothing_to_learn(folder: Path) -> Path:
    return curve(folder, [1.0, 0.1, 0.0, 0.0, 0.0, 0.0])


@fault("conflicting_losses")
def opposite(folder: Path) -> Path:
    return two_losses(folder, (1.0, -0.5))


@fault("loss_imbalance")
def drowned(folder: Path) -> Path:
    return two_losses(folder, (1.0, 0.001))


@fault("inputs_not_normalised", "input")
def raw_pixels(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return 128 + 60 * inputs, labels

    return train(folder, classifier(), batches=batches, steps=6)


@fault("constant_features", "input")
def empty_columns(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        inputs[:, 2:] = 1.0
        return inputs, labels

    return train(folder, classifier(), batches=batches, steps=6)


@fault("unshuffled", "target")
def sorted_labels(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        return inputs, torch.full_like(labels, step // 8)

    return train(folder, classifier(), batches=batches, steps=24)


@fault("class_imbalance", "target")
def nearly_all_zero(folder: Path) -> Path:
    def batches(step: int) -> tuple[Tensor, Tensor]:
        inputs, labels = blobs(step)
        labels[2:] = 0
        labels[0] = 2
        return inputs, labels

    return train(folder, classifier(), batches=batches, steps=8)


@fault("repeated_batches", "input")
def begins_anew(folder: Path) -> Path:
    return train(folder, classifier(), batches=lambda step: blobs(step // 4), steps=24)


@fault("bad_initialisation", "0.weight")
def all_equal(folder: Path) -> Path:
    model = classifier()
    filled(model[0], weight=0.1)
    return train(folder, model, steps=4)


@fault("wrong_initial_loss", "loss")
def confident_nonsense(folder: Path) -> Path:
    model = classifier()
    scaled(model[2], 40.0)
    return train(folder, model, steps=4)


@fault("dead_weights", "0.weight")
def decayed(folder: Path) -> Path:
    model = classifier()

    def decay(step: int) -> None:
        scaled(model[0], 0.1)

    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-9), before=decay, steps=20)


@fault("sign_collapse", "0.weight")
def only_positive(folder: Path) -> Path:
    model = classifier()
    filled(model[0], weight=torch.rand(16, 8) * 0.2 + 0.05)
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-3), steps=8)


@fault("dormant_units", "1")
def few_units_speak(folder: Path) -> Path:
    model = classifier()
    weight = torch.rand(16, 8) * 1e-3
    weight[:2] = 3.0
    filled(model[0], weight=weight, bias=1e-4)
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-6), steps=8)


@fault("massive_activations", "0")
def one_huge_unit(folder: Path) -> Path:
    model = classifier(nn.Identity(), width=64)
    weight = torch.randn(64, 8) * 0.01
    weight[3] = 5e3
    filled(model[0], weight=weight)
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-12), steps=8)


@fault("attention_collapse", "attention")
def one_hot_attention(folder: Path) -> Path:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.attention, self.head = nn.Linear(8, 8), nn.Softmax(dim=-1), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.attention(200 * self.query(x)) * x)

    model = Attention()
    return train(folder, model, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4), steps=8)


@fault("residual_ignored", "1.scale")
def adds_nothing(folder: Path) -> Path:
    return train(folder, classifier(Residual(16, 1e-5)), steps=8)


@fault("overflow_underflow", "1")
def near_the_end_of_half(folder: Path) -> Path:
    class Half(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * 2e4).clamp(-6e4, 6e4).half()

    class Single(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.float() / 2e4

    return train(folder, classifier(Half(), Single()), steps=6)


@fault("train_eval_mismatch", "1")
def stale_statistics(folder: Path) -> Path:
    model = classifier(nn.BatchNorm1d(16), nn.ReLU())
    filled(model[1], running_var=400.0)
    model[1].momentum = 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(12):
            is_training = number % 2 == 0
            model.train(is_training)
            inputs, labels = blobs(number)
            with run.step(number, type="train" if is_training else "eval"):
                loss = functional.cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                if is_training:
                    optimizer.step()
    return Path(run.path)


@fault("few_samples")
def one_sample_counts(folder: Path) -> Path:
    def loss(out: Tensor, labels: Tensor) -> Tensor:
        weights = torch.ones(32)
        weights[4] = 500.0
        return (weights * functional.cross_entropy(out, labels, reduction="none")).mean()

    model = classifier()
    return train(folder, model, loss=loss, optimizer=torch.optim.SGD(model.parameters(), lr=1e-4), steps=8)


@fault("branch_imbalance", "small")
def one_branch_learns(folder: Path) -> Path:
    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.small, self.large = nn.Linear(8, 8), nn.Linear(8, 3), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            x = self.first(x)
            return 1e-5 * self.small(x) + self.large(x)

    return train(folder, Branches(), steps=8)


@fault("rank_collapse", "0")
def fewer_directions(folder: Path) -> Path:
    model = classifier(nn.Identity())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer, spectra=endoscope.policies.every(1))
        for number in range(12):
            with torch.no_grad():
                model[0].weight[1:] += (0.0 if number < 5 else 0.5) * (model[0].weight[:1] - model[0].weight[1:])
            inputs, labels = blobs(number)
            inputs = torch.randn(32, 8)
            loss = functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Path(run.path)


@fault("overfit")
def learned_by_heart(folder: Path) -> Path:
    held_out = [0.5 + 0.002 * (number - 10) ** 2 for number in range(30)]
    return curve(folder, [2.0 / (1 + number) for number in range(30)], val_loss=held_out)


@fault("gradients_not_zeroed")
def summed_up(folder: Path) -> Path:
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with endoscope.Run(folder, trial="trial", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(12):
            inputs, labels = blobs(number)
            functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
    return Path(run.path)
