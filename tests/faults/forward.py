"""Runs whose activations are not finite, dead, saturated, or of the wrong size."""

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
        "nonfinite",
        Shown("steps with NaN or Inf after `log`", lambda r: reading.nonfinite_steps(r, "log"), above=0),
        ("log",),
    ),
)
def log_of_zero_mlp(run: endoscope.Run) -> None:
    """A logarithm of counts; from step 20 on, one sample has a count of zero."""

    def blank(number: int, x: Tensor, y: Tensor) -> data.Batch:
        counts = (x - x.min()) + 0.5
        if number >= 20:
            counts[5] = 0
        return counts, y

    model = chain(log=Function(torch.log), first=nn.Linear(64, 32), act=nn.ReLU(), last=nn.Linear(32, 10))
    fit(run, model, data.changed(data.batches(), blank))


class Masked(networks.Transformer):
    """Tokens that are all zero are hidden from the attention."""

    def forward(self, rows: Tensor, mask: Tensor | None = None) -> Tensor:
        return super().forward(rows, (rows == 0).all(-1)[:, None, :].expand(-1, 8, -1))


@case(
    "transformer",
    Fault(
        "nonfinite",
        Shown(
            "steps with NaN after the softmax",
            lambda r: reading.nonfinite_steps(r, "blocks.0.attention.softmax"),
            above=0,
        ),
        ("blocks.0.attention.softmax", "blocks.0.attention"),
    ),
)
def empty_sequence_transformer(run: endoscope.Run) -> None:
    """At step 25 one sample consists of padding only, so that the softmax sees nothing but −inf."""

    def pad(number: int, x: Tensor, y: Tensor) -> data.Batch:
        x = x.clone()
        x[3] = 0 if number == 25 else x[3]
        return x, y

    fit(run, Masked(), data.changed(data.batches("rows"), pad))


def _dead(node: str, above: float = 0.9) -> Shown:
    return Shown(
        "share of units that are 0 in every sample of every step",
        lambda r: reading.share(r, node, "abs_max", 0.0),
        above=above,
    )


@case("mlp", Fault("dead_units", _dead("act2"), ("act2", "second"), ("zero_gradient",)))
def dying_relu_mlp(run: endoscope.Run) -> None:
    """The biases of a layer are so low that its ReLUs never fire."""
    model = networks.mlp()
    with torch.no_grad():
        model.second.bias[:60] = -8.0
    fit(run, model, data.batches())


@case(
    "cnn",
    Fault(
        "dead_units",
        Shown(
            "share of zeros after the ReLU, last step",
            lambda r: reading.last(r, "relu1", "zeros") / reading.last(r, "relu1", "count"),
            above=0.7,
        ),
        ("relu1", "conv1"),
    ),
)
def dying_relu_cnn(run: endoscope.Run) -> None:
    """A far too large step at the fifth batch drives six of eight channels below zero for good."""
    model = networks.cnn()

    def blow(number: int) -> None:
        if number == 5:
            with torch.no_grad():
                model.conv1.bias[:6] -= 30.0

    fit(run, model, data.batches("image"), after=blow)


def _dormant(node: str) -> Shown:
    return Shown(
        "share of units at most 1/50 as large as the mean unit, last step",
        lambda r: reading.quiet_share(r, node, 0.02),
        above=0.5,
    )


@case("mlp", Fault("dormant_units", _dormant("act1"), ("act1", "first"), ("dead_units",)))
def dormant_units_mlp(run: endoscope.Run) -> None:
    """Three of four units of a layer have weights a thousandth of the others'."""
    model = networks.mlp()
    with torch.no_grad():
        model.first.weight[:48] *= 1e-3
        model.first.bias[:48] = 1e-3
        model.second.weight[:, :48] *= 1e-3
    fit(run, model, data.batches(), sgd(model, 0.05))


@case("autoencoder", Fault("dormant_units", _dormant("act1"), ("act1", "encoder"), ("dead_units",)))
def dormant_units_autoencoder(run: endoscope.Run) -> None:
    """Two thirds of the encoder's units hardly move."""
    model = networks.autoencoder(activation=nn.Tanh)
    with torch.no_grad():
        model.encoder.weight[:32] *= 1e-3
        model.encoder.bias[:32] = 1e-4
        model.code.weight[:, :32] *= 1e-3
    fit(run, model, data.pixels(), sgd(model, 0.2), loss=F.mse_loss)


@case(
    "mlp",
    Fault(
        "saturated",
        Shown("share of |tanh| ≥ 0.97", lambda r: reading.beyond(r, "act1", 0.97), above=0.6),
        ("act1", "first"),
        ("bad_initialisation",),
    ),
)
def saturated_tanh_mlp(run: endoscope.Run) -> None:
    """Weights before a tanh are twenty times too large."""
    model = networks.mlp(activation=nn.Tanh)
    with torch.no_grad():
        model.first.weight *= 20
    fit(run, model, data.batches())


@case(
    "rnn",
    Fault(
        "saturated",
        Shown("share of |tanh| ≥ 0.97 in the last state", lambda r: reading.beyond(r, "act", 0.97, pass_=8), above=0.6),
        ("act", "recur"),
        ("bad_initialisation",),
    ),
)
def saturated_state_rnn(run: endoscope.Run) -> None:
    """Recurrent weights are so large that the state is always at its ends."""
    model = networks.Rnn()
    with torch.no_grad():
        model.recur.weight *= 25
    fit(run, model, data.batches("rows"))


@case(
    "mlp",
    Fault(
        "scale_range",
        Shown("std after `scale`, first step", lambda r: reading.first(r, "scale", "std"), above=1e3),
        ("scale", "second"),
        ("wrong_initial_loss", "massive_activations"),
    ),
)
def huge_activations_mlp(run: endoscope.Run) -> None:
    """A forgotten factor of 10,000 between two layers."""
    model = chain(
        first=nn.Linear(64, 64),
        act1=nn.ReLU(),
        scale=Function(lambda x: x * 1e4),
        second=nn.Linear(64, 64),
        act2=nn.ReLU(),
        last=nn.Linear(64, 10),
    )
    fit(run, model, data.batches(), adam(model, 1e-4))


@case(
    "cnn",
    Fault(
        "scale_range",
        Shown("std after conv2, last step", lambda r: reading.last(r, "conv2", "std"), below=1e-3),
        ("conv2", "conv1", "relu1", "pool", "relu2", "flat"),
        ("bad_initialisation", "vanishing_gradient"),
    ),
)
def tiny_activations_cnn(run: endoscope.Run) -> None:
    """Weights of all convolutions are a thousandth of what they should be."""
    model = networks.cnn()
    with torch.no_grad():
        for layer in (model.conv1, model.conv2):
            layer.weight *= 1e-3
            layer.bias.zero_()
    fit(run, model, data.batches("image"), sgd(model, 0.05))


@case(
    "mlp",
    Fault(
        "growing_activations",
        Shown("std of act2, last ÷ first", lambda r: reading.growth(r, "act2", "std"), above=5),
        ("act2", "second", "act1", "first"),
        ("diverging_weights",),
    ),
)
def growing_activations_mlp(run: endoscope.Run) -> None:
    """The sign of a penalty on the activations is wrong, so they are rewarded for growing."""
    model = networks.mlp()
    kept: list[Tensor] = []
    model.act2.register_forward_hook(lambda module, args, out: kept.append(out))

    def loss(out: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(out, y) - 0.3 * kept.pop().square().mean().sqrt()

    fit(run, model, data.batches(), adam(model, 1e-2), loss=loss)


@case(
    "rnn",
    Fault(
        "growing_activations",
        Shown("std of the last state, last step ÷ first", lambda r: reading.growth(r, "act", "std", pass_=8), above=5),
        ("act", "recur", "read", "head", "output"),
        ("diverging_weights",),
    ),
)
def growing_state_rnn(run: endoscope.Run) -> None:
    """Weight decay with the wrong sign in a recurrent network without bounds on its state."""
    model = networks.Rnn(activation=nn.ReLU)
    with torch.no_grad():
        model.recur.weight.copy_(0.5 * torch.eye(32))

    def decay(number: int) -> None:
        with torch.no_grad():
            model.recur.weight *= 1.035

    fit(run, model, data.batches("rows"), sgd(model, 0.005), after=decay)
