"""Runs whose loss tells that something is wrong."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.networks import chain
from tests.faults.training import adam, fit, sgd


@case(
    "mlp",
    Fault(
        "wrong_initial_loss",
        Shown("first loss ÷ ln 10", lambda r: reading.metric(r, "loss")[0] / 2.3026, above=3),
        (),
        ("bad_initialisation",),
    ),
)
def loud_last_layer_mlp(run: endoscope.Run) -> None:
    """The last layer starts with weights a hundred times too large: sure and wrong."""
    model = networks.mlp()
    with torch.no_grad():
        model.last.weight *= 100
    fit(run, model, data.batches())


@case(
    "cnn",
    Fault(
        "wrong_initial_loss", Shown("first loss ÷ ln 10", lambda r: reading.metric(r, "loss")[0] / 2.3026, above=3), ()
    ),
)
def sum_instead_of_mean_cnn(run: endoscope.Run) -> None:
    """The loss is a sum over the batch."""
    model = networks.cnn()
    fit(
        run,
        model,
        data.batches("image"),
        adam(model, 1e-3),
        loss=lambda out, y: F.cross_entropy(out, y, reduction="sum"),
    )


def _stands() -> Shown:
    return Shown("loss, last quarter ÷ first quarter", reading.improvement, above=0.98)


@case("mlp", Fault("plateau", _stands(), ()))
def random_labels_mlp(run: endoscope.Run) -> None:
    """Labels are shuffled apart from the pictures in every batch: there is nothing to learn."""
    model = networks.mlp()
    mix = lambda number, x, y: (x, y[torch.randperm(len(y))])  # noqa: E731
    fit(run, model, data.changed(data.batches(steps=60), mix), adam(model, 1e-3))


@case("rnn", Fault("plateau", _stands(), (), ("constant_features", "collapsed_batch")))
def blank_input_rnn(run: endoscope.Run) -> None:
    """A loader returns noise in place of the pictures."""
    model = networks.Rnn()
    noise = lambda number, x, y: (torch.randn_like(x), y)  # noqa: E731
    fit(run, model, data.changed(data.batches("rows", steps=60), noise), adam(model, 1e-3))


@case(
    "mlp",
    Fault(
        "divergence",
        Shown(
            "last loss ÷ smallest loss",
            lambda r: reading.metric(r, "loss")[-1] / reading.metric(r, "loss").min(),
            above=10,
        ),
        (),
        ("exploding_gradient", "nonfinite", "growing_activations", "diverging_weights"),
    ),
)
def diverging_mlp(run: endoscope.Run) -> None:
    """Plain gradient descent on a linear regression with a step that is a little too long."""
    model = chain(last=nn.Linear(16, 1))
    fit(run, model, data.shuffled(data.curve(), size=256), sgd(model, 1.15), loss=F.mse_loss)


@case(
    "autoencoder",
    Fault(
        "divergence",
        Shown(
            "last loss ÷ smallest loss",
            lambda r: reading.metric(r, "loss")[-1] / reading.metric(r, "loss").min(),
            above=10,
        ),
        (),
        ("exploding_gradient", "nonfinite", "growing_activations", "diverging_weights"),
    ),
)
def schedule_goes_up_autoencoder(run: endoscope.Run) -> None:
    """The learning rate is multiplied by 1.25 after every step instead of divided."""
    model = networks.autoencoder()
    optimizer = adam(model, 1e-3)

    def raise_it(number: int) -> None:
        optimizer.param_groups[0]["lr"] *= 1.25

    fit(run, model, data.pixels(), optimizer, loss=F.mse_loss, after=raise_it)


def _zigzag() -> Shown:
    return Shown("share of steps at which the loss turns", reading.turns, above=0.85)


@case("mlp", Fault("oscillation", _zigzag(), (), ("update_ratio", "repeated_batches")))
def swinging_mlp(run: endoscope.Run) -> None:
    """Gradient descent with steps at the edge of what the curvature allows: two values take turns for ever."""
    model = chain(first=nn.Linear(16, 1, bias=False), last=nn.Linear(1, 1, bias=False))
    with torch.no_grad():
        model.first.weight *= 0.5
        model.last.weight.fill_(0.7)
    x, direction = torch.randn(256, 16), F.normalize(torch.randn(16), dim=0)
    y = (x @ direction)[:, None]
    fit(run, model, ((x, y) for _ in range(60)), sgd(model, 0.56), loss=F.mse_loss)


@case("autoencoder", Fault("oscillation", _zigzag(), (), ("update_ratio",)))
def swinging_autoencoder(run: endoscope.Run) -> None:
    """Two settings take turns from step to step: every other batch is far brighter."""
    model = networks.autoencoder()
    bright = lambda number, x, y: (x * 3, x * 3) if number % 2 else (x, x)  # noqa: E731
    fit(run, model, data.changed(data.pixels(), bright), adam(model, 1e-3), loss=F.mse_loss)


def _spike() -> Shown:
    return Shown(
        "largest loss ÷ median",
        lambda r: float(reading.metric(r, "loss").max() / reading.np.median(reading.metric(r, "loss"))),
        above=4,
    )


@case("rnn", Fault("loss_spike", _spike(), (), ("spiking_gradient",)))
def wrong_labels_once_rnn(run: endoscope.Run) -> None:
    """One batch has labels of the wrong kind, when the network already knows the right ones."""
    model = networks.Recurrent(nn.GRU(8, 48, batch_first=True), 48)
    wrong = lambda number, x, y: (x, (y + 5) % 10 if number == 90 else y)  # noqa: E731
    fit(run, model, data.changed(data.batches("rows", steps=100), wrong), adam(model, 1e-2))


@case("autoencoder", Fault("loss_spike", _spike(), (), ("spiking_gradient",)))
def bright_batch_autoencoder(run: endoscope.Run) -> None:
    """One batch is five times brighter."""
    model = networks.autoencoder()
    bright = lambda number, x, y: (x * 5, x * 5) if number == 26 else (x, x)  # noqa: E731
    fit(run, model, data.changed(data.pixels(), bright), sgd(model, 0.1), loss=F.mse_loss)


def _apart() -> Shown:
    return Shown(
        "loss in validation ÷ in training, at the end",
        lambda r: float(reading.metric(r, "val_loss")[-3:].mean() / reading.metric(r, "loss")[-8:].mean()),
        above=3,
    )


@case("mlp", Fault("overfit", _apart(), (), ("repeated_batches",)))
def overfit_mlp(run: endoscope.Run) -> None:
    """Forty pictures are learned by heart."""
    x, y = data.digits()
    few = (x[:40], y[:40])
    fit(
        run,
        networks.mlp(width=128),
        data.shuffled(few, steps=80, size=20),
        validation=data.shuffled((x[200:], y[200:]), size=128),
    )


@case("cnn", Fault("overfit", _apart(), (), ("repeated_batches",)))
def overfit_noisy_labels_cnn(run: endoscope.Run) -> None:
    """Labels of a small training set are partly wrong, and are learned all the same."""
    x, y = data.digits("image")
    wrong = torch.where(torch.rand(64) < 0.3, torch.randint(0, 10, (64,)), y[:64])
    model = networks.cnn(channels=12)
    fit(
        run,
        model,
        data.shuffled((x[:64], wrong), steps=80),
        adam(model, 1e-2),
        validation=data.shuffled((x[200:], y[200:]), size=128),
    )


def _zero() -> Shown:
    return Shown("largest loss", lambda r: float(reading.metric(r, "loss").max()), below=1e-8)


@case("autoencoder", Fault("zero_loss", _zero(), (), ("zero_gradient",)))
def compared_with_itself_autoencoder(run: endoscope.Run) -> None:
    """The output is compared with the output."""
    fit(run, networks.autoencoder(), data.pixels(), loss=lambda out, x: F.mse_loss(out, out.detach()))


@case("cnn", Fault("zero_loss", _zero(), (), ("zero_gradient",)))
def softmax_over_one_class_cnn(run: endoscope.Run) -> None:
    """Cross entropy over a single output is zero, whatever the output is."""
    model = networks.cnn(outputs=1)

    def loss(out: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(out, torch.zeros_like(y))

    fit(run, model, data.batches("image"), loss=loss)
