"""Other networks with nothing wrong: convolutions, recurrence, attention, embeddings, autoencoders, a GAN."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import endoscope
from tests.faults import data, networks
from tests.faults.healthy import STEPS
from tests.faults.label import case
from tests.faults.networks import Function, chain
from tests.faults.training import adam, fit, fit_gan, fit_losses, sgd


@case("cnn")
def healthy_cnn_momentum(run: endoscope.Run) -> None:
    """Convolutions and momentum."""
    model = networks.cnn()
    fit(run, model, data.batches("image", STEPS), sgd(model, 0.05, momentum=0.9))


@case("cnn")
def healthy_cnn_batch_norm(run: endoscope.Run) -> None:
    """Batch norm, Adam, and validation steps."""
    x, y = data.digits("image")
    model = networks.cnn(norm=nn.BatchNorm2d)
    fit(
        run,
        model,
        data.shuffled((x[:1400], y[:1400]), STEPS),
        adam(model, 3e-3),
        validation=data.shuffled((x[1400:], y[1400:]), size=64),
    )


@case("cnn")
def healthy_cnn_group_norm(run: endoscope.Run) -> None:
    """Group norm and AdamW; inputs from 0 to 1."""
    model = networks.cnn(norm=lambda channels: nn.GroupNorm(4, channels))
    unit = lambda number, x, y: ((x - x.min()) / (x.max() - x.min()), y)  # noqa: E731
    fit(run, model, data.changed(data.batches("image", STEPS), unit), torch.optim.AdamW(model.parameters(), lr=5e-3))


@case("cnn")
def healthy_cnn_frozen_backbone(run: endoscope.Run) -> None:
    """Convolutions are frozen on purpose; only the head is trained."""
    model = networks.cnn(channels=16)
    model.conv1.requires_grad_(False)
    model.conv2.requires_grad_(False)
    fit(run, model, data.batches("image", STEPS), torch.optim.Adam(model.head.parameters(), lr=5e-3))


@case("cnn")
def healthy_cnn_dropout(run: endoscope.Run) -> None:
    """Dropout of one half before the head."""
    model = networks.cnn(channels=12)
    model.flat = chain(flat=nn.Flatten(), drop=nn.Dropout(0.5))
    fit(run, model, data.batches("image", STEPS), adam(model, 5e-3))


@case("rnn")
def healthy_rnn_plain(run: endoscope.Run) -> None:
    """A plain recurrent network with tanh."""
    model = networks.Rnn(width=48)
    fit(run, model, data.batches("rows", STEPS), adam(model, 5e-3))


@case("rnn")
def healthy_rnn_gru(run: endoscope.Run) -> None:
    """A GRU."""
    model = networks.Recurrent(nn.GRU(8, 48, batch_first=True), 48)
    fit(run, model, data.batches("rows", STEPS), adam(model, 1e-2))


@case("rnn")
def healthy_rnn_lstm(run: endoscope.Run) -> None:
    """An LSTM with clipped gradients."""
    model = networks.Recurrent(nn.LSTM(8, 48, batch_first=True), 48)
    clip = lambda number: nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # noqa: E731
    fit(run, model, data.batches("rows", STEPS), adam(model, 1e-2), before=clip)


@case("transformer")
def healthy_transformer(run: endoscope.Run) -> None:
    """Two blocks, normalised before each branch, AdamW."""
    model = networks.Transformer()
    fit(run, model, data.batches("rows", STEPS), torch.optim.AdamW(model.parameters(), lr=3e-3))


@case("transformer")
def healthy_transformer_warm_up(run: endoscope.Run) -> None:
    """Four blocks, warm-up, spectra."""
    model = networks.Transformer(width=24, blocks=4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min((n + 1) / 15, 1.0))
    fit(
        run,
        model,
        data.batches("rows", STEPS),
        optimizer,
        after=lambda number: schedule.step(),
        spectra=endoscope.policies.every(10),
    )


class Tokens(nn.Module):
    """Words of a small language; most rows of the table get no gradient in a given step."""

    def __init__(self, sparse: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(200, 16, sparse=sparse)
        self.head = nn.Linear(16, 4)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.table(words).mean(1))


def words(steps: int) -> Any:
    """Five words each; the class is that to which most of the words belong."""
    for _ in range(steps):
        found = torch.randint(0, 200, (64, 5))
        yield found, F.one_hot(found % 4, 4).sum(1).argmax(1)


@case("mlp")
def healthy_embedding_rare_words(run: endoscope.Run) -> None:
    """An embedding whose gradients are mostly zero."""
    model = Tokens(sparse=False)
    fit(run, model, words(80), adam(model, 3e-2))


@case("mlp")
def healthy_embedding_sparse(run: endoscope.Run) -> None:
    """Sparse gradients and the optimizer for them."""
    model = Tokens(sparse=True)
    optimizers = [
        torch.optim.SparseAdam(model.table.parameters(), lr=3e-2),
        torch.optim.Adam(model.head.parameters(), 1e-2),
    ]
    run.watch(model, optimizers)
    for x, y in words(80):
        with run.step(type="train") as step:
            loss = F.cross_entropy(model(x), y)
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
            step.metric("loss", loss)


@case("autoencoder")
def healthy_autoencoder(run: endoscope.Run) -> None:
    """An autoencoder."""
    fit(run, networks.autoencoder(), data.pixels(STEPS), loss=F.mse_loss)


@case("autoencoder")
def healthy_autoencoder_sigmoid(run: endoscope.Run) -> None:
    """Pixels from 0 to 1 and a sigmoid at the end."""
    model = networks.autoencoder()
    model.append(nn.Sigmoid())
    unit = lambda number, x, y: (((x - x.min()) / (x.max() - x.min())),) * 2  # noqa: E731
    fit(run, model, data.changed(data.pixels(STEPS), unit), adam(model, 5e-3), loss=F.binary_cross_entropy)


class Vae(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = chain(first=nn.Linear(64, 48), act=nn.ReLU(), both=nn.Linear(48, 16))
        self.draw = Function(lambda mean, log_var: mean + torch.randn_like(mean) * (0.5 * log_var).exp())
        self.decoder = chain(first=nn.Linear(8, 48), act=nn.ReLU(), out=nn.Linear(48, 64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_var = self.encoder(x).chunk(2, 1)
        return self.decoder(self.draw(mean, log_var)), mean, log_var


@case("autoencoder")
def healthy_vae(run: endoscope.Run) -> None:
    """Two losses that pull in different directions, in balance."""

    def losses(out: tuple[Tensor, Tensor, Tensor], x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        picture, mean, log_var = out
        distance = 0.5 * (mean.square() + log_var.exp() - 1 - log_var).sum(1).mean()
        return {"picture": F.mse_loss(picture, x, reduction="none").sum(1).mean(), "distance": distance}

    model = Vae()
    fit_losses(run, model, data.pixels(STEPS), losses, adam(model, 3e-3))


@case("gan")
def healthy_gan(run: endoscope.Run) -> None:
    """Maker and judge keep each other in check."""
    fit_gan(run, networks.generator(), networks.critic(), STEPS)


@case("mlp")
def healthy_two_tasks(run: endoscope.Run) -> None:
    """Which digit, and is it even: two losses of like size that agree."""
    model = networks.mlp(outputs=12)

    def losses(out: Tensor, x: Tensor, y: Tensor) -> Mapping[str, Tensor]:
        return {"digit": F.cross_entropy(out[:, :10], y), "even": F.cross_entropy(out[:, 10:], y % 2)}

    fit_losses(run, model, data.batches(steps=STEPS), losses)
