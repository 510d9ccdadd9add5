"""Runs with something wrong in the data, or between the output and the loss."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.networks import chain
from tests.faults.training import adam, fit, sgd


def _far(node: str = "input") -> Shown:
    return Shown("largest |x| of the input", lambda r: reading.largest(r, node, "abs_max"), above=100)


@case("mlp", Fault("inputs_not_normalised", _far(), ("input",)))
def bytes_mlp(run: endoscope.Run) -> None:
    """Pixels from 0 to 255."""
    model = networks.mlp()
    raw = lambda number, x, y: ((x - x.min()) / (x.max() - x.min()) * 255, y)  # noqa: E731
    fit(run, model, data.changed(data.batches(), raw), adam(model, 1e-4))


@case("cnn", Fault("inputs_not_normalised", _far(), ("input",)))
def shifted_pictures_cnn(run: endoscope.Run) -> None:
    """Pictures around 200, with a spread of 30."""
    model = networks.cnn()
    fit(run, model, data.changed(data.batches("image"), lambda number, x, y: (30 * x + 200, y)), adam(model, 1e-4))


def _constant() -> Shown:
    return Shown(
        "share of inputs that never change within a batch", lambda r: reading.share(r, "input", "std", 1e-6), above=0.5
    )


@case("mlp", Fault("constant_features", _constant(), ("input",)))
def empty_columns_mlp(run: endoscope.Run) -> None:
    """Two thirds of the columns were filled with one value by a broken join."""

    def fill(number: int, x: Tensor, y: Tensor) -> data.Batch:
        x = x.clone()
        x[:, :44] = 0.5
        return x, y

    fit(run, networks.mlp(), data.changed(data.batches(), fill))


@case("autoencoder", Fault("constant_features", _constant(), ("input",)))
def blank_half_autoencoder(run: endoscope.Run) -> None:
    """The lower part of all pictures is missing."""

    def cut(number: int, x: Tensor, y: Tensor) -> data.Batch:
        x = x.clone()
        x[:, 24:] = 0
        return x, x

    fit(run, networks.autoencoder(), data.changed(data.pixels(), cut), loss=F.mse_loss)


def _common() -> Shown:
    return Shown("share of the commonest label", reading.commonest_label, above=0.85)


def _mostly(view: str, label: int, others: int) -> data.Batch:
    x, y = data.digits(view)
    kept = torch.cat([(y == label).nonzero().flatten().repeat(5), (y != label).nonzero().flatten()[:others]])
    return x[kept], y[kept]


@case("mlp", Fault("class_imbalance", _common(), ()))
def one_class_mlp(run: endoscope.Run) -> None:
    """Nineteen of twenty samples are of one class."""
    fit(run, networks.mlp(), data.shuffled(_mostly("flat", 3, 45)))


@case("cnn", Fault("class_imbalance", _common(), ()))
def one_class_cnn(run: endoscope.Run) -> None:
    """Thirteen of fourteen pictures are of one class, and the user says which sample is of which class."""
    model = networks.cnn()
    optimizer = adam(model)
    run.watch(model, optimizer)
    for x, y in data.shuffled(_mostly("image", 0, 70)):
        with run.step(type="train") as step:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            step.metric("loss", loss)
            step.decide(samples=torch.arange(4), categories=y)


def _sorted(view: str, run_of: int) -> Iterator[data.Batch]:
    x, y = data.digits(view)
    order = y.argsort(stable=True)
    for number in range(data.STEPS):
        start = (number * run_of) % (len(x) - 32)
        chosen = order[start : start + 32]
        yield x[chosen], y[chosen]


def _few_labels() -> Shown:
    return Shown("different labels among four kept samples, mean", reading.labels_per_batch, below=1.5)


@case("mlp", Fault("unshuffled", _few_labels(), (), ("class_imbalance", "repeated_batches")))
def sorted_by_label_mlp(run: endoscope.Run) -> None:
    """Samples come sorted by their class."""
    fit(run, networks.mlp(), _sorted("flat", 44))


@case("cnn", Fault("unshuffled", _few_labels(), (), ("class_imbalance", "repeated_batches")))
def sorted_by_label_cnn(run: endoscope.Run) -> None:
    """Pictures lie in one folder per class and are read in that order."""
    fit(run, networks.cnn(), _sorted("image", 36))


def _again() -> Shown:
    return Shown("share of steps whose input was there before", reading.repeated, above=0.4)


@case("mlp", Fault("repeated_batches", _again(), ()))
def repeated_batches_mlp(run: endoscope.Run) -> None:
    """Every batch comes four times in a row: four workers with one seed."""
    fit(run, networks.mlp(), (batch for batch in data.batches(steps=10) for _ in range(4)))


@case("rnn", Fault("repeated_batches", _again(), (), ("overfit",)))
def same_batch_rnn(run: endoscope.Run) -> None:
    """An iterator is made anew in each step with the same seed: always two batches, in turns."""
    two = list(data.batches("rows", steps=2))
    fit(run, networks.Rnn(), (two[number % 2] for number in range(data.STEPS)))


def _one_side(node: str) -> Shown:
    return Shown("|5 % quantile| ÷ 95 % quantile before the sigmoid", lambda r: reading.lopsided(r, node), below=0.1)


@case("mlp", Fault("asymmetric_range", _one_side("leaky"), ("leaky", "last", "sigmoid")))
def leaky_relu_before_sigmoid_mlp(run: endoscope.Run) -> None:
    """A leaky ReLU on the output, before the sigmoid: saying no is a hundred times harder than saying yes."""
    model = chain(
        first=nn.Linear(64, 64), act1=nn.ReLU(), last=nn.Linear(64, 1), leaky=nn.LeakyReLU(0.01), sigmoid=nn.Sigmoid()
    )

    def loss(out: Tensor, y: Tensor) -> Tensor:
        return F.binary_cross_entropy(out[:, 0], (y > 4).float())

    fit(run, model, data.batches(), sgd(model, 0.1), loss=loss)


@case("autoencoder", Fault("asymmetric_range", _one_side("relu"), ("relu", "out", "sigmoid"), ("dead_units",)))
def relu_before_sigmoid_autoencoder(run: endoscope.Run) -> None:
    """A ReLU on the output, before the sigmoid: no pixel can be darker than one half."""
    model = chain(
        encoder=nn.Linear(64, 48),
        act1=nn.ReLU(),
        code=nn.Linear(48, 16),
        act2=nn.ReLU(),
        out=nn.Linear(16, 64),
        relu=nn.ReLU(),
        sigmoid=nn.Sigmoid(),
    )
    grey = lambda number, x, y: (x, (x - x.min()) / (x.max() - x.min()))  # noqa: E731
    fit(run, model, data.changed(data.pixels(), grey), adam(model, 1e-3), loss=F.mse_loss)
