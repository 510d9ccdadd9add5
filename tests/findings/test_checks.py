"""Every check finds the fault that was planted for it, and is quiet about healthy runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope
from endoscope.findings.finding import INFO, SEVERITIES, WARNING
from endoscope.findings.registry import all_checks
from tests.findings import planted_code  # noqa: F401  # adds its faults to the list
from tests.findings.planted import FAULTS
from tests.findings.runs import blobs, classifier, curve, train, two_losses


def test_every_check_has_a_planted_fault() -> None:
    assert set(FAULTS) == set(all_checks())


@pytest.mark.parametrize("check", sorted(FAULTS))
def test_the_planted_fault_is_found(check: str, tmp_path: Path) -> None:
    make, node = FAULTS[check]
    path = make(tmp_path)
    found = [finding for finding in endoscope.diagnose(path) if finding.check == check]
    assert found, [str(finding) for finding in endoscope.diagnose(path)]
    first = found[0]
    assert node is None or node in {first.node, *first.also}
    assert first.severity in SEVERITIES and first.title and first.detail and first.causes and first.remedies
    assert first.first_step <= first.last_step and first.value == first.value
    assert first.link.startswith("#v=1&") and "trial=trial" in first.link
    assert not [finding for finding in endoscope.diagnose(path) if finding.title == "could not be checked"]


def digits_like(step: int) -> tuple[Tensor, Tensor]:
    inputs, labels = blobs(step)
    return inputs[:, :, None].repeat(1, 1, 8)[:, None], labels


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRU(1, 16, batch_first=True), nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.cell(x[:, :, None])[0][:, -1])


class ByHand(nn.Module):
    """Its first state is the same for all samples, and that is no fault."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.recur, self.act = nn.Linear(1, 16), nn.Linear(16, 16), nn.Tanh()
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = x.new_zeros(len(x), 16)
        for part in x.unbind(dim=1):
            state = self.act(self.read(part[:, None]) + self.recur(state))
        return self.head(state)


def healthy_models() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    convolution = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(72, 3)
    )
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    frozen = classifier()
    frozen[0].requires_grad_(False)
    return {
        "relu": classifier(),
        "tanh": classifier(nn.Tanh()),
        "gelu and layer norm": classifier(nn.LayerNorm(16), nn.GELU()),
        "dropout": classifier(nn.ReLU(), nn.Dropout(0.5)),
        "frozen on purpose": frozen,
        "convolution": convolution,
        "recurrent": Recurrent(),
        "recurrent by hand": ByHand(),
        "transformer": nn.Sequential(nn.Unflatten(1, (1, 8)), layer, nn.Flatten(), nn.Linear(8, 3)),
    }


@pytest.mark.parametrize("name", healthy_models())
@pytest.mark.parametrize("optimizer", ["Adam", "SGD"])
def test_healthy_runs_are_quiet(name: str, optimizer: str, tmp_path: Path) -> None:
    model = healthy_models()[name]
    used = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}[optimizer]
    batches = digits_like if name == "convolution" else blobs
    path = train(
        tmp_path, model, batches=batches, optimizer=used(model.parameters(), lr=0.003 if optimizer == "Adam" else 0.1)
    )
    assert [str(finding) for finding in endoscope.diagnose(path) if finding.severity != INFO] == []


def test_a_recurrence_that_forgets(tmp_path: Path) -> None:
    model = ByHand()
    with torch.no_grad():
        model.recur.weight.mul_(0.05)
    found = endoscope.diagnose(train(tmp_path, model, optimizer=torch.optim.SGD(model.parameters(), lr=0.01)))
    assert "vanishing_gradient" in {finding.check for finding in found}


def test_two_losses_that_agree_are_quiet(tmp_path: Path) -> None:
    assert [str(finding) for finding in endoscope.diagnose(two_losses(tmp_path, (1.0, 0.5)))] == []


def test_a_loss_that_falls_and_stays_is_quiet(tmp_path: Path) -> None:
    noise = torch.randn(100).tolist()
    values = [0.3 + 2.7 ** -(number / 10) + 0.02 * noise[number] for number in range(100)]
    assert endoscope.diagnose(curve(tmp_path, values)) == []


def test_a_sigmoid_that_reads_logits_is_quiet(tmp_path: Path) -> None:
    model = nn.Sequential(*classifier(), nn.Sigmoid())

    def loss(out: Tensor, labels: Tensor) -> Tensor:
        return functional.binary_cross_entropy(out, functional.one_hot(labels, 3).float())

    assert [str(finding) for finding in endoscope.diagnose(train(tmp_path, model, loss=loss))] == []


def test_an_additive_mask_is_no_fault(tmp_path: Path) -> None:
    class Masked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.mask, self.weights = nn.Linear(8, 3), nn.Identity(), nn.Softmax(dim=-1)

        def forward(self, x: Tensor) -> Tensor:
            scores = self.mask(x.masked_fill(torch.arange(8) > 5, -torch.inf))
            return self.head(self.weights(scores) * x)

    path = train(tmp_path, Masked(), steps=6)
    assert [str(finding) for finding in endoscope.diagnose(path) if finding.severity != INFO] == []


# ---- what looks like a fault, and is none --------------------------------------------------------


def severities(path: Path, check: str) -> list[str]:
    return [finding.severity for finding in endoscope.diagnose(path) if finding.check == check]


def test_a_held_out_loss_that_rises_a_little_beside_all_that_was_learned(tmp_path: Path) -> None:
    training = [1.2 * 0.8**number for number in range(30)]
    held_out = [1.2 * 0.7**number + 0.001 * number for number in range(30)]
    assert held_out[-1] > 1.3 * min(held_out)
    assert severities(curve(tmp_path, training, val_loss=held_out), "overfit") == []


def test_a_hard_batch_near_the_end_of_training_is_no_spike(tmp_path: Path) -> None:
    values = [1.0 * 0.9**number for number in range(60)]
    values[50] = 0.3
    assert severities(curve(tmp_path, values), "loss_spike") == []


class Coder(nn.Module):
    """A small variational autoencoder."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 8), nn.Linear(4, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, spread = self.encoder(x).chunk(2, dim=1)
        return self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


def test_losses_that_balance_each_other_are_an_info(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Coder()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    mixture = torch.randn(2, 8)
    with endoscope.Run(tmp_path, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer)
        for _ in range(120):
            x = torch.randn(64, 2) @ mixture
            with run.step() as step:
                out, mean, spread = model(x)
                with step.gradients("picture"):
                    (out - x).square().sum(1).mean().backward(retain_graph=True)
                with step.gradients("prior"):
                    (0.5 * (mean.square() + spread.exp() - spread - 1).sum(1).mean()).backward()
                optimizer.step()
                optimizer.zero_grad()
    assert severities(Path(run.path), "conflicting_losses") == [INFO]


def test_a_loss_with_the_wrong_sign_is_a_warning(tmp_path: Path) -> None:
    assert severities(two_losses(tmp_path, (1.0, -0.5)), "conflicting_losses") == [WARNING]


def test_a_loss_that_rose_a_little_is_not_called_less(tmp_path: Path) -> None:
    noise = [0.002 * (-1) ** step for step in range(40)]
    risen = curve(tmp_path / "risen", [2.0 * (1 + 0.0003 * step) + noise[step] for step in range(40)])
    flat = curve(tmp_path / "flat", [2.0] * 40)
    fallen = curve(tmp_path / "fallen", [2.0 * (1 - 0.0001 * step) + 20 * noise[step] for step in range(40)])
    told = [
        next(one.detail for one in endoscope.diagnose(path) if one.check == "plateau") for path in (risen, flat, fallen)
    ]
    assert "% more;" in told[0] and "-" not in told[0], told[0]
    assert "it has not changed;" in told[1], told[1]
    assert "% less;" in told[2] and "-" not in told[2], told[2]
