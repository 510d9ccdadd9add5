"""Runs whose representation collapses, is ignored, does not fit its precision or differs in evaluation."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks, reading
from tests.faults.label import Fault, Shown, case
from tests.faults.networks import chain
from tests.faults.training import adam, fit, sgd


@case(
    "gan",
    Fault(
        "collapsed_batch",
        Shown("std over the batch, last ÷ first", lambda r: reading.unit_std(r, "maker.last", type="maker"), below=0.1),
        ("maker.last", "maker", "maker.out"),
        ("saturated",),
    ),
)
def mode_collapse_gan(run: endoscope.Run) -> None:
    """The judge is one linear layer and is not trained, so the maker finds one point that it likes, for any noise."""
    train_maker(run, networks.generator(last=nn.Tanh), nn.Linear(2, 1))


def train_maker(run: endoscope.Run, maker: nn.Module, judge: nn.Module) -> None:
    optimizer = torch.optim.Adam(maker.parameters(), lr=3e-2)
    run.watch(maker, optimizer, name="maker")
    for _ in range(data.STEPS):
        with run.step(type="maker") as step:
            optimizer.zero_grad()
            loss = -judge(maker(torch.randn(32, 4))).mean()
            loss.backward()
            optimizer.step()
            step.metric("maker loss", loss)


@case(
    "autoencoder",
    Fault(
        "collapsed_batch",
        Shown("std of the code over the batch, last ÷ first", lambda r: reading.unit_std(r, "code"), below=0.05),
        ("code", "decoder", "act2", "out", "output"),
        ("rank_collapse", "plateau"),
    ),
)
def posterior_collapse_autoencoder(run: endoscope.Run) -> None:
    """The penalty on the code is so strong that the code says nothing about the input."""
    model = networks.autoencoder()
    kept: list[Tensor] = []
    model.code.register_forward_hook(lambda module, args, out: kept.append(out))
    fit(
        run,
        model,
        data.pixels(),
        adam(model, 1e-2),
        loss=lambda out, x: F.mse_loss(out, x) + 300 * kept.pop().square().mean(),
    )


SPECTRA = endoscope.policies.every(4)


@case(
    "mlp",
    Fault(
        "rank_collapse",
        Shown("effective rank of act2, last ÷ first", lambda r: reading.rank_left(r, "act2"), below=0.4),
        ("act2", "second", "last", "output", "second.weight"),
        ("collapsed_batch",),
    ),
)
def rank_collapse_mlp(run: endoscope.Run) -> None:
    """After each step a layer is compressed a little: towards the strongest direction of its weights."""
    model = networks.mlp(activation=nn.Tanh)

    def compress(number: int) -> None:
        with torch.no_grad():
            left, sizes, right = torch.linalg.svd(model.second.weight)
            model.second.weight.lerp_(sizes[0] * left[:, :1] @ right[:1], 0.2)
            model.second.bias.mul_(0.8)

    fit(run, model, data.batches(), after=compress, spectra=SPECTRA)


@case(
    "autoencoder",
    Fault(
        "rank_collapse",
        Shown("effective rank of the code, last ÷ first", lambda r: reading.rank_left(r, "code"), below=0.4),
        ("code", "code.weight", "decoder", "act2", "out", "output"),
        ("collapsed_batch",),
    ),
)
def rank_collapse_autoencoder(run: endoscope.Run) -> None:
    """All but one direction of the code are shrunk after every step: a projection in the wrong place."""
    model = networks.autoencoder(code=24)

    def shrink(number: int) -> None:
        with torch.no_grad():
            mean = model.code.weight.mean(0, keepdim=True)
            model.code.weight.lerp_(mean.expand_as(model.code.weight), 0.3)
            model.code.bias.mul_(0.7)

    fit(run, model, data.pixels(), loss=F.mse_loss, after=shrink, spectra=SPECTRA)


def _massive(node: str) -> Shown:
    return Shown(
        "largest ÷ median size of a value, last step",
        lambda r: reading.last(r, node, "abs_max") / max(abs(reading.last(r, node, "q50")), 1e-9),
        above=500,
    )


@case(
    "transformer",
    Fault(
        "massive_activations",
        _massive("blocks.0"),
        ("blocks.0", "blocks.0.feed", "blocks.0.feed.down", "blocks.1"),
        ("scale_range",),
    ),
)
def massive_activation_transformer(run: endoscope.Run) -> None:
    """One unit of the residual stream carries a constant of 3,000."""
    model = networks.Transformer()
    with torch.no_grad():
        model.blocks[0].feed.down.bias[7] = 3e3
    fit(run, model, data.batches("rows"))


@case("mlp", Fault("massive_activations", _massive("first"), ("first", "act1"), ("scale_range",)))
def massive_activation_mlp(run: endoscope.Run) -> None:
    """One unit is ten thousand times larger than the others; the next layer has learned not to look."""
    model = networks.mlp()
    with torch.no_grad():
        model.first.weight[3] *= 1e4
        model.second.weight[:, 3] = 0
    model.second.weight.register_hook(lambda grad: grad * _all_but(3, grad))
    fit(run, model, data.batches(), sgd(model, 0.05))


def _all_but(column: int, like: Tensor) -> Tensor:
    mask = torch.ones_like(like)
    mask[:, column] = 0
    return mask


def _one_hot(node: str) -> Shown:
    return Shown("entropy of the attention ÷ log n, last step", lambda r: reading.entropy(r, node), below=0.1)


@case(
    "transformer",
    Fault(
        "attention_collapse",
        _one_hot("blocks.0.attention.softmax"),
        ("blocks.0.attention.softmax", "blocks.0.attention"),
        ("saturated",),
    ),
)
def attention_collapse_transformer(run: endoscope.Run) -> None:
    """The factor before the softmax grows by a fifth with every step."""
    model = networks.Transformer()

    def sharpen(number: int) -> None:
        model.blocks[0].attention.factor *= 1.2

    fit(run, model, data.batches("rows"), after=sharpen)


class Pooled(nn.Module):
    """A recurrent layer whose states are mixed by attention."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(8, 32, batch_first=True)
        self.attention = networks.Attention(32)
        self.head = nn.Linear(32, 10)

    def forward(self, rows: Tensor) -> Tensor:
        return self.head(self.attention(self.rnn(rows)[0]).mean(1))


@case(
    "rnn",
    Fault(
        "attention_collapse",
        _one_hot("attention.softmax"),
        ("attention.softmax", "attention"),
        ("saturated", "diverging_weights"),
    ),
)
def attention_collapse_rnn(run: endoscope.Run) -> None:
    """Queries and keys grow without bounds, until each state looks at one other only."""
    model = Pooled()

    def grow(number: int) -> None:
        with torch.no_grad():
            model.attention.query.weight *= 1.12
            model.attention.key.weight *= 1.12

    fit(run, model, data.batches("rows"), after=grow)


def _branch(branch: str, skip: str) -> Shown:
    return Shown(
        "mean|branch| ÷ mean|skip|, median over steps", lambda r: reading.ratio(r, branch, skip, "abs_mean"), below=1e-2
    )


@case("mlp", Fault("residual_ignored", _branch("branches.1", "first"), ("branches.1",), ("bad_initialisation",)))
def residual_ignored_mlp(run: endoscope.Run) -> None:
    """What a residual branch adds is a thousandth of what it is added to, and stays so."""
    model = networks.Residual()
    with torch.no_grad():
        model.branches[1].down.weight *= 1e-4
        model.branches[1].down.bias.zero_()
    frozen = {id(p) for p in model.branches[1].down.parameters()}
    groups = [
        {"params": [p for p in model.parameters() if id(p) not in frozen]},
        {"params": list(model.branches[1].down.parameters()), "lr": 1e-6},
    ]
    fit(run, model, data.batches(), torch.optim.Adam(groups, lr=3e-3))


@case(
    "transformer",
    Fault(
        "residual_ignored",
        _branch("blocks.0.attention", "embed"),
        ("blocks.0.attention", "blocks.0.feed", "blocks.1.attention", "blocks.1.feed", "embed"),
        ("scale_range", "bad_initialisation"),
    ),
)
def residual_ignored_transformer(run: endoscope.Run) -> None:
    """Embeddings are a thousand times larger than what attention and feed-forward add to them."""
    model = networks.Transformer()
    with torch.no_grad():
        model.embed.weight *= 1e3
    fit(run, model, data.batches("rows"))


class Narrow(nn.Module):
    """A linear layer in 16 bits, as mixed precision without care would have it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size).half()

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x.half())


class Widen(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.float()


@case(
    "mlp",
    Fault(
        "overflow_underflow",
        Shown("largest |x| in float16", lambda r: reading.largest(r, "narrow", "abs_max"), above=3e4),
        ("narrow", "narrow.linear"),
        ("nonfinite", "scale_range"),
    ),
)
def fp16_overflow_mlp(run: endoscope.Run) -> None:
    """In float16, values come close to the largest number there is, 65,504."""
    model = chain(
        first=nn.Linear(64, 64),
        act1=nn.ReLU(),
        narrow=Narrow(64),
        wide=Widen(),
        norm=nn.LayerNorm(64),
        last=nn.Linear(64, 10),
    )
    with torch.no_grad():
        model.narrow.linear.weight *= 6e4
    fit(run, model, data.batches(), sgd(model, 1e-2))


@case(
    "autoencoder",
    Fault(
        "overflow_underflow",
        Shown(
            "share of zeros in the float16 gradient, median", lambda r: _zero_share(r, "narrow", "gradient"), above=0.4
        ),
        ("narrow", "narrow.linear", "encoder", "act1"),
        ("zero_gradient", "vanishing_gradient"),
    ),
)
def fp16_underflow_autoencoder(run: endoscope.Run) -> None:
    """A tiny weight on the loss, and no gradient scaler: most gradients in float16 are flushed to zero."""
    model = chain(encoder=nn.Linear(64, 32), act1=nn.ReLU(), narrow=Narrow(32), wide=Widen(), out=nn.Linear(32, 64))
    fit(run, model, data.pixels(), sgd(model, 1e3), loss=lambda out, x: 1e-5 * F.mse_loss(out, x))


def _zero_share(recording: Any, node: str, of: str) -> float:
    zeros = reading.series(recording, node, "zeros", of=of)
    return float((zeros / reading.series(recording, node, "count", of=of)).mean())


def _mismatch(node: str, above: float = 2) -> Shown:
    return Shown("std in one type of step ÷ in the other", lambda r: reading.between_types(r, node), above=above)


@case("mlp", Fault("train_eval_mismatch", _mismatch("norm"), ("norm", "act1", "first", "last", "output"), ("overfit",)))
def stale_batch_norm_mlp(run: endoscope.Run) -> None:
    """Running averages of a batch norm follow so slowly that evaluation uses wrong ones."""
    model = chain(
        first=nn.Linear(64, 64), norm=nn.BatchNorm1d(64, momentum=1e-4), act1=nn.ReLU(), last=nn.Linear(64, 10)
    )
    with torch.no_grad():
        model.first.weight *= 6
    fit(run, model, data.batches(), validation=data.batches())


@case("cnn", Fault("train_eval_mismatch", _mismatch("conv1"), ("input", "conv1"), ("overfit",)))
def other_scaling_in_evaluation_cnn(run: endoscope.Run) -> None:
    """Pictures are normalised for training and not for evaluation."""
    model = networks.cnn()
    optimizer = adam(model)
    wrong = data.changed(data.batches("image"), lambda number, x, y: (x * 6 + 5, y))
    fit(run, model, data.batches("image"), optimizer, validation=wrong)
