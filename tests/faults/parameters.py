"""Runs with something wrong with the parameters, their start or the optimizer."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.training import adam, fit, sgd


@case(
    "mlp",
    Fault(
        "update_ratio",
        Shown("mean|update| ÷ mean|weight|, median", lambda r: reading.update_size(r, "second.weight"), above=0.1),
        (),
        ("oscillation", "divergence", "growing_activations", "diverging_weights", "loss_spike"),
    ),
)
def learning_rate_too_high_mlp(run: endoscope.Run) -> None:
    """AdamW with a learning rate of 0.1 and no momentum: in each step a good part of the weights is replaced."""
    model = networks.mlp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, betas=(0.0, 0.9), weight_decay=2.0)
    fit(run, model, data.batches(), optimizer)


@case(
    "cnn",
    Fault(
        "update_ratio",
        Shown("mean|update| ÷ mean|weight|, median", lambda r: reading.update_size(r, "conv2.weight"), below=1e-6),
        (),
        ("plateau", "unchanged_parameters"),
    ),
)
def learning_rate_too_low_cnn(run: endoscope.Run) -> None:
    """A learning rate of 1e-8, as if a schedule had gone wrong."""
    model = networks.cnn()
    fit(run, model, data.batches("image"), adam(model, 1e-8))


def _still(node: str) -> Shown:
    return Shown(
        "largest change from the first to the last step ÷ norm of the gradient",
        lambda r: reading.moved(r, node) / reading.last(r, node, "norm", of="gradient"),
        below=1e-12,
    )


@case("mlp", Fault("unchanged_parameters", _still("first.weight"), ("first",)))
def forgotten_parameters_mlp(run: endoscope.Run) -> None:
    """The first layer is trainable and gets gradients, but the optimizer does not have it."""
    model = networks.mlp()
    chosen = [*model.second.parameters(), *model.last.parameters()]
    fit(run, model, data.batches(), torch.optim.Adam(chosen, lr=3e-3))


@case("transformer", Fault("unchanged_parameters", _still("embed.weight"), ("embed",)))
def group_without_learning_rate_transformer(run: endoscope.Run) -> None:
    """The embedding is in a group of parameters whose learning rate is zero."""
    model = networks.Transformer()
    rest = [p for name, p in model.named_parameters() if not name.startswith("embed")]
    groups = [{"params": list(model.embed.parameters()), "lr": 0.0}, {"params": rest}]
    fit(run, model, data.batches("rows"), torch.optim.AdamW(groups, lr=3e-3))


def _growing(node: str) -> Shown:
    return Shown("norm of the weights, last ÷ first", lambda r: reading.growth(r, node, "norm"), above=10)


@case(
    "mlp",
    Fault("diverging_weights", _growing("second.weight"), (), ("growing_activations", "divergence", "scale_range")),
)
def negative_weight_decay_mlp(run: endoscope.Run) -> None:
    """Weight decay with the wrong sign: weights grow by a tenth with each step."""
    model = networks.mlp()

    def decay(number: int) -> None:
        with torch.no_grad():
            for layer in (model.first, model.second, model.last):
                layer.weight *= 1.1

    fit(run, model, data.batches(), sgd(model, 0.01), after=decay)


@case(
    "cnn",
    Fault(
        "diverging_weights",
        _growing("conv2.weight"),
        ("conv2", "conv2.weight", "relu2", "head", "norm2", "flat", "output"),
        ("growing_activations", "divergence", "update_ratio"),
    ),
)
def spectral_reward_cnn(run: endoscope.Run) -> None:
    """A penalty on the weights of a layer is subtracted instead of added."""
    model = networks.cnn()

    def loss(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(out, y) - 2.0 * model.conv2.weight.square().sum()

    fit(run, model, data.batches("image"), sgd(model, 0.02), loss=loss)


def _tiny(node: str) -> Shown:
    return Shown("share of |weight| < 1e-5, last step", lambda r: reading.raw_tiny_share(r, node), above=0.95)


@case(
    "mlp",
    Fault(
        "dead_weights",
        _tiny("second.weight"),
        ("second", "second.weight"),
        ("scale_range", "collapsed_batch", "vanishing_gradient", "plateau"),
    ),
)
def far_too_much_decay_mlp(run: endoscope.Run) -> None:
    """AdamW whose weight decay takes a third of the weights with each step."""
    model = networks.mlp()
    others = [*model.first.parameters(), *model.last.parameters(), model.second.bias]
    groups = [{"params": [model.second.weight], "weight_decay": 1.2e5, "lr": 3e-6}, {"params": others}]
    fit(run, model, data.batches(), torch.optim.AdamW(groups, lr=3e-3, weight_decay=0.0))


@case(
    "autoencoder",
    Fault(
        "dead_weights",
        _tiny("code.weight"),
        ("code", "code.weight"),
        ("scale_range", "collapsed_batch", "vanishing_gradient", "plateau"),
    ),
)
def pruned_away_autoencoder(run: endoscope.Run) -> None:
    """A threshold for small weights is so high that 99 of 100 are set to zero after every step."""
    model = networks.autoencoder()

    def prune(number: int) -> None:
        with torch.no_grad():
            size = model.code.weight.abs()
            model.code.weight[size < size.flatten().quantile(0.99)] = 0

    fit(run, model, data.pixels(), loss=F.mse_loss, after=prune)


def _negative(node: str) -> Shown:
    return Shown("share of weights below 0, last step", lambda r: reading.raw_negative_share(r, node), above=0.95)


@case("mlp", Fault("sign_collapse", _negative("second.weight"), ("second", "second.weight"), ("dead_units",)))
def all_negative_mlp(run: endoscope.Run) -> None:
    """All weights of a layer are negative."""
    model = networks.mlp()
    with torch.no_grad():
        model.second.weight.abs_().neg_().sub_(0.05)
        model.second.bias.fill_(3.0)
    fit(run, model, data.batches(), sgd(model, 0.01))


@case("cnn", Fault("sign_collapse", _negative("conv2.weight"), ("conv2", "conv2.weight"), ("dead_units",)))
def clamped_weights_cnn(run: endoscope.Run) -> None:
    """A clamp on the weights has the wrong bound: only negative ones are left."""
    model = networks.cnn()

    def clamp(number: int) -> None:
        with torch.no_grad():
            model.conv2.weight.clamp_(max=-1e-3)
            model.conv2.bias.fill_(1.0)

    clamp(0)
    fit(run, model, data.batches("image"), sgd(model, 0.02), after=clamp)


@case(
    "mlp",
    Fault(
        "bad_initialisation",
        Shown("std of the first weights, first step", lambda r: reading.first(r, "second.weight", "std"), below=1e-6),
        ("second", "first", "first.weight", "second.weight", "last"),
        ("rank_collapse",),
    ),
)
def constant_initialisation_mlp(run: endoscope.Run) -> None:
    """All weights of two layers start with one value, so all their units stay equal."""
    model = networks.mlp()
    for layer in (model.first, model.second):
        nn.init.constant_(layer.weight, 0.02)
        nn.init.zeros_(layer.bias)
    fit(run, model, data.batches())


@case(
    "cnn",
    Fault(
        "bad_initialisation",
        Shown(
            "std of the weights of conv2, first step, against 0.12 of He",
            lambda r: reading.first(r, "conv2.weight", "std"),
            above=0.9,
        ),
        ("conv1", "conv2", "head", "conv1.weight", "conv2.weight", "head.weight"),
        ("wrong_initial_loss", "scale_range", "exploding_gradient"),
    ),
)
def unit_normal_initialisation_cnn(run: endoscope.Run) -> None:
    """Weights are drawn with a standard deviation of 1, whatever the number of inputs."""
    model = networks.cnn()
    for layer in (model.conv1, model.conv2, model.head):
        nn.init.normal_(layer.weight)
    fit(run, model, data.batches("image"))
