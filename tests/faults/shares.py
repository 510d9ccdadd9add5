"""Runs whose gradients are shared out badly: between branches, losses, samples and steps."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.networks import chain
from tests.faults.training import fit, fit_losses, sgd


class TwoBranches(nn.Module):
    """Both branches read the same hidden tensor; what comes from `far` is multiplied."""

    def __init__(self, body: nn.Module, factor: float) -> None:
        super().__init__()
        self.body = body
        self.near, self.far = nn.Linear(48, 10), nn.Linear(48, 10)
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        return self.near(hidden) + self.factor * self.far(hidden)


def _imbalance(one: str, other: str) -> Shown:
    return Shown(
        "gradient on one branch ÷ on the other", lambda r: reading.ratio(r, one, other, of="gradient"), above=500
    )


@case("mlp", Fault("branch_imbalance", _imbalance("near", "far"), ("near", "far", "body", "body.last")))
def branch_imbalance_mlp(run: endoscope.Run) -> None:
    """Of two branches, one is multiplied by a thousandth."""
    fit(run, TwoBranches(networks.mlp(outputs=48), 1e-3), data.batches())


@case("cnn", Fault("branch_imbalance", _imbalance("near", "far"), ("near", "far", "body", "body.head")))
def branch_imbalance_cnn(run: endoscope.Run) -> None:
    """The same on top of convolutions, with a factor of 1/2000."""
    fit(run, TwoBranches(networks.cnn(outputs=48), 5e-4), data.batches("image"))


def _losses_apart(node: str, one: str, other: str) -> Shown:
    def figure(recording: object) -> float:
        large = reading.series(recording, node, "norm", of=f"gradient:{one}")
        return float(reading.np.median(large / reading.series(recording, node, "norm", of=f"gradient:{other}")))

    return Shown(f"gradient of `{one}` ÷ of `{other}`, median", figure, above=100)


@case("mlp", Fault("loss_imbalance", _losses_apart("first.weight", "penalty", "error"), ()))
def loss_imbalance_mlp(run: endoscope.Run) -> None:
    """A penalty on the size of the output with a weight a thousand times too large."""

    def losses(out: Tensor, x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        return {"error": F.cross_entropy(out, y), "penalty": 3e4 * out.square().mean()}

    fit_losses(run, networks.mlp(), data.batches(), losses)


class TwoOutputs(nn.Module):
    """An autoencoder that also names the digit."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = chain(first=nn.Linear(64, 48), act=nn.ReLU(), code=nn.Linear(48, 16))
        self.decoder = nn.Linear(16, 64)
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        code = self.encoder(x)
        return self.decoder(code), self.head(code)


@case("autoencoder", Fault("loss_imbalance", _losses_apart("encoder.first.weight", "class", "picture"), ()))
def loss_imbalance_autoencoder(run: endoscope.Run) -> None:
    """Error of the picture as a mean over pixels, that of the class as a sum: no pixel is ever learned."""

    def losses(out: tuple[Tensor, Tensor], x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        return {"picture": 0.1 * F.mse_loss(out[0], x), "class": F.cross_entropy(out[1], y, reduction="sum")}

    fit_losses(run, TwoOutputs(), data.batches(), losses)


def _against(node: str) -> Shown:
    return Shown("cosine between the gradients, mean", lambda r: reading.cosine(r, node), below=-0.5)


@case("mlp", Fault("conflicting_losses", _against("first.weight"), ()))
def conflicting_losses_mlp(run: endoscope.Run) -> None:
    """Two targets for one output that are each other's negative."""

    def losses(out: Tensor, x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        return {"towards": F.mse_loss(out, y), "away": 0.9 * F.mse_loss(out, -y)}

    fit_losses(run, networks.mlp(inputs=16, outputs=1), data.shuffled(data.curve()), losses, None)


@case("autoencoder", Fault("conflicting_losses", _against("encoder.weight"), ()))
def conflicting_losses_autoencoder(run: endoscope.Run) -> None:
    """One loss wants large outputs, the other small ones."""

    def losses(out: Tensor, x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        return {"picture": F.mse_loss(out, 2 * x), "size": 0.8 * F.mse_loss(out, -2 * x)}

    fit_losses(run, networks.autoencoder(), data.pixels(), losses)


def _one_sample(node: str) -> Shown:
    return Shown(
        "share of the squared gradient that is from one sample of 32, median",
        lambda r: reading.largest_sample_share(r, node),
        above=0.9,
    )


@case("mlp", Fault("few_samples", _one_sample("last"), (), ("spiking_gradient",)))
def outliers_mlp(run: endoscope.Run) -> None:
    """In every batch of a regression one target is two hundred times too large."""

    def spoil(number: int, x: Tensor, y: Tensor) -> data.Batch:
        y = y.clone()
        y[number % len(y)] = 200.0
        return x, y

    model = networks.mlp(inputs=16, outputs=1)
    fit(run, model, data.changed(data.shuffled(data.curve()), spoil), sgd(model, 1e-4), loss=F.mse_loss)


@case("autoencoder", Fault("few_samples", _one_sample("out"), (), ("spiking_gradient", "inputs_not_normalised")))
def outliers_autoencoder(run: endoscope.Run) -> None:
    """One picture of every batch is fifty times too bright."""

    def spoil(number: int, x: Tensor, y: Tensor) -> data.Batch:
        x = x.clone()
        x[(3 * number) % len(x)] *= 50.0
        return x, x

    model = networks.autoencoder()
    fit(run, model, data.changed(data.pixels(), spoil), sgd(model, 1e-4), loss=F.mse_loss)


def _accumulated(node: str) -> Shown:
    return Shown("size of update ÷ gradient, last step ÷ first", lambda r: reading.steps_taken(r, node), above=5)


@case("mlp", Fault("gradients_not_zeroed", _accumulated("first.weight"), ()))
def no_zero_grad_mlp(run: endoscope.Run) -> None:
    """`zero_grad()` is missing."""
    model = networks.mlp()
    fit(run, model, data.batches(), sgd(model, 0.01), clear=False)


@case("cnn", Fault("gradients_not_zeroed", _accumulated("conv1.weight"), ()))
def no_zero_grad_cnn(run: endoscope.Run) -> None:
    """`zero_grad()` is missing, with smaller steps."""
    model = networks.cnn()
    fit(run, model, data.batches("image"), sgd(model, 0.003), clear=False)
