"""Runs whose gradients vanish, explode, spike or do not arrive."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.networks import Function, chain
from tests.faults.training import adam, fit, sgd


@case(
    "mlp",
    Fault(
        "vanishing_gradient",
        Shown(
            "gradient of the first layer ÷ of the last",
            lambda r: reading.ratio(r, "first.weight", "last.weight", of="gradient"),
            below=1e-4,
        ),
        ("first", "first.weight", "act0", "layer1", "layer2", "layer3", "layer4", "input"),
    ),
)
def vanishing_gradient_mlp(run: endoscope.Run) -> None:
    """Ten layers of sigmoids."""
    fit(run, networks.deep(10, nn.Sigmoid), data.batches())


@case(
    "rnn",
    Fault(
        "vanishing_gradient",
        Shown(
            "gradient on the first state ÷ on the last",
            lambda r: (
                reading.last(r, "act", "norm", of="gradient", pass_=1)
                / reading.last(r, "act", "norm", of="gradient", pass_=24)
            ),
            below=1e-6,
        ),
        ("act", "recur", "read"),
    ),
)
def vanishing_gradient_rnn(run: endoscope.Run) -> None:
    """Recurrent weights are so small that nothing of the first rows is left after 24 of them."""
    model = networks.Rnn(length=24)
    with torch.no_grad():
        model.recur.weight *= 0.3
    fit(run, model, data.batches("rows"), sgd(model, 0.05))


@case(
    "mlp",
    Fault(
        "exploding_gradient",
        Shown(
            "gradient of the first layer, largest norm",
            lambda r: reading.largest(r, "first.weight", "norm", of="gradient"),
            above=1e3,
        ),
        tuple(f"layer{n}" for n in range(1, 8)) + ("first", "act0", "act1", "act2", "act3", "last"),
        ("scale_range", "bad_initialisation", "wrong_initial_loss"),
    ),
)
def exploding_gradient_mlp(run: endoscope.Run) -> None:
    """Eight layers, each of which makes everything four times larger."""
    model = networks.deep(8, nn.ReLU)
    with torch.no_grad():
        for number in range(1, 8):
            getattr(model, f"layer{number}").weight *= 8
    fit(run, model, data.batches(), adam(model, 1e-4))


@case(
    "rnn",
    Fault(
        "exploding_gradient",
        Shown(
            "gradient on the first state ÷ on the last, median",
            lambda r: reading.over_passes(r, "act", 24),
            above=300,
        ),
        ("act", "recur", "read"),
        ("scale_range", "wrong_initial_loss"),
    ),
)
def exploding_gradient_rnn(run: endoscope.Run) -> None:
    """The gradient is multiplied by 1.35 at each of 24 rows on its way back; the optimizer clips, too late."""
    model = networks.Rnn(length=24, activation=nn.Identity)
    with torch.no_grad():
        model.recur.weight.copy_(1.35 * torch.linalg.qr(torch.randn(32, 32))[0])
    clip = lambda number: nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # noqa: E731
    fit(run, model, data.batches("rows"), sgd(model, 1e-3), before=clip)


@case(
    "mlp",
    Fault(
        "spiking_gradient",
        Shown(
            "gradient norm of the first layer, largest ÷ median",
            lambda r: reading.peak(r, "first.weight", "norm", of="gradient"),
            above=50,
        ),
        (),
        ("loss_spike",),
    ),
)
def bad_batch_mlp(run: endoscope.Run) -> None:
    """One batch of a regression has targets a hundred times too large."""
    spoil = lambda number, x, y: (x, y * 100 if number == 27 else y)  # noqa: E731
    model = networks.mlp(inputs=16, outputs=1)
    fit(run, model, data.changed(data.shuffled(data.curve()), spoil), sgd(model, 1e-3), loss=F.mse_loss)


@case(
    "cnn",
    Fault(
        "spiking_gradient",
        Shown(
            "gradient norm before clipping, largest ÷ median",
            reading.peak_before_clipping,
            above=10,
        ),
        (),
        ("loss_spike", "scale_range"),
    ),
)
def bad_pictures_cnn(run: endoscope.Run) -> None:
    """One batch was not scaled down from bytes."""
    spoil = lambda number, x, y: (x * 60 if number == 22 else x, y)  # noqa: E731
    model = networks.cnn()
    clip = lambda number: nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # noqa: E731
    fit(run, model, data.changed(data.batches("image"), spoil), sgd(model, 0.05), before=clip)


class SideHead(nn.Module):
    """A second head whose result nobody uses."""

    def __init__(self) -> None:
        super().__init__()
        self.body = networks.mlp(outputs=32)
        self.side = nn.Linear(32, 5)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.body(x)
        self.side(hidden)
        return self.head(hidden)


@case(
    "mlp",
    Fault(
        "missing_gradient",
        Shown(
            "share of steps without a gradient on side.weight",
            lambda r: reading.no_gradient(r, "side.weight"),
            above=0.99,
        ),
        ("side",),
    ),
)
def unused_head_mlp(run: endoscope.Run) -> None:
    """A head is computed, its parameters are trainable, but it is in no loss."""
    fit(run, SideHead(), data.batches())


class Cut(networks.Transformer):
    def forward(self, rows: Tensor, mask: Tensor | None = None) -> Tensor:
        x = (self.embed(rows) + self.place).detach()
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


@case(
    "transformer",
    Fault(
        "missing_gradient",
        Shown(
            "share of steps without a gradient on embed.weight",
            lambda r: reading.no_gradient(r, "embed.weight"),
            above=0.99,
        ),
        ("embed", "place"),
    ),
)
def detached_embedding_transformer(run: endoscope.Run) -> None:
    """A forgotten `detach()` after the embedding."""
    fit(run, Cut(), data.batches("rows"))


def _no_gradient_left(node: str) -> Shown:
    return Shown("largest norm of the gradient", lambda r: reading.largest(r, node, "norm", of="gradient"), below=1e-12)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = networks.mlp()
        self.extra = nn.Linear(64, 10)
        self.register_buffer("gate", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.main(x) + self.gate * self.extra(x)


@case("mlp", Fault("zero_gradient", _no_gradient_left("extra.weight"), ("extra",), ("unchanged_parameters",)))
def closed_gate_mlp(run: endoscope.Run) -> None:
    """A path is multiplied by a gate that is zero and not trained."""
    fit(run, Gated(), data.batches())


@case(
    "cnn",
    Fault(
        "zero_gradient",
        _no_gradient_left("conv1.weight"),
        ("conv1", "relu1", "norm1", "pool"),
        ("unchanged_parameters", "missing_gradient"),
    ),
)
def rounding_cnn(run: endoscope.Run) -> None:
    """Activations are rounded, which has the gradient zero, so nothing before it learns."""
    model = networks.cnn()
    model.pool = chain(pool=nn.MaxPool2d(2), round=Function(lambda x: torch.round(4 * x) / 4))
    fit(run, model, data.batches("image"))
