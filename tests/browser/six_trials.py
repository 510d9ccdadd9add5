"""Six trainings of one small transformer: four with a fault that was planted, two that are well.

python -m tests.browser.six_trials FOLDER
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

import endoscope

BLOCKS, WIDTH, TOKENS, CLASSES, BATCH = 4, 16, 6, 4, 24
STEPS, EVERY, FAULT_AT = 160, 4, 80
DEAD, CUT = "blocks.2.mlp.act", 1  # which layer dies, and behind which block the gradient is cut


@dataclass(frozen=True)
class Trial:
    """What one of them is told."""

    name: str
    lr: float = 3e-3
    act: type[nn.Module] = nn.ReLU
    dead_from: int | None = None
    loss: str = "cross entropy"
    detach: int | None = None

    def config(self) -> dict[str, object]:
        found = {"lr": self.lr, "act": self.act.__name__, "loss": self.loss, "seed": 0, "data": {"tokens": TOKENS}}
        found |= {} if self.dead_from is None else {"dead_from": self.dead_from}
        return found | ({} if self.detach is None else {"detach": [self.detach]})


TRIALS = (
    Trial("baseline"),
    Trial("gelu", act=nn.GELU),
    Trial("stop-gradient", detach=CUT),
    Trial("high-lr", lr=0.3),
    Trial("own-log-softmax", loss="log(softmax(x))"),
    Trial("dead-block", dead_from=FAULT_AT),
)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.softmax = nn.Softmax(-1)
        self.project = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(1, 2) / WIDTH**0.5
        mixed: Tensor = self.project(self.softmax(scores) @ self.v(x))
        return mixed


class Mlp(nn.Module):
    def __init__(self, act: type[nn.Module]) -> None:
        super().__init__()
        self.up, self.act, self.down = nn.Linear(WIDTH, 2 * WIDTH), act(), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.down(self.act(self.up(x)))
        return found


class Block(nn.Module):
    def __init__(self, act: type[nn.Module]) -> None:
        super().__init__()
        self.norm1, self.attn = nn.LayerNorm(WIDTH), Attention()
        self.norm2, self.mlp = nn.LayerNorm(WIDTH), Mlp(act)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        found: Tensor = x + self.mlp(self.norm2(x))
        return found


class Network(nn.Module):
    def __init__(self, trial: Trial) -> None:
        super().__init__()
        self.detach = trial.detach
        self.embed = nn.Linear(8, WIDTH)
        self.blocks = nn.ModuleList(Block(trial.act) for _ in range(BLOCKS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.embed(x)
        for number, block in enumerate(self.blocks):
            x = block(x.detach() if number == self.detach else x)
        found: Tensor = self.head(self.norm(x).mean(1))
        return found


def batch(step: int, centres: Tensor) -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(1000 + step)
    labels = torch.randint(0, CLASSES, (BATCH,), generator=chance)
    return centres[labels] + torch.randn(BATCH, TOKENS, 8, generator=chance), labels


def train(root: Path, trial: Trial, steps: int = STEPS) -> None:
    torch.manual_seed(0)
    model = Network(trial)
    centres = torch.randn(CLASSES, TOKENS, 8, generator=torch.Generator().manual_seed(3))
    optimizer = torch.optim.Adam(model.parameters(), lr=trial.lr)
    run = endoscope.Run(root, trial=trial.name, when=endoscope.policies.every(EVERY), config=trial.config())
    run.watch(model, optimizer)
    for number in range(steps):
        if number == trial.dead_from:
            with torch.no_grad():
                model.get_submodule(DEAD.replace("act", "up")).bias.fill_(-60.0)
        inputs, labels = batch(number, centres)
        optimizer.zero_grad()
        logits = model(inputs)
        if trial.loss == "cross entropy":
            loss = functional.cross_entropy(logits, labels)
        else:  # runs out of the range of float32 as soon as the network is sure of something
            sharpness = 1.0 if number < FAULT_AT else 200.0
            loss = -(sharpness * logits).softmax(-1).log()[torch.arange(BATCH), labels].mean()
        loss.backward()
        optimizer.step()
        run.metric("loss", loss)
        run.metric("accuracy", (logits.argmax(-1) == labels).float().mean())
    run.close()


def record(root: Path, trials: tuple[Trial, ...] = TRIALS) -> None:
    for trial in trials:
        train(root, trial)


if __name__ == "__main__":
    torch.set_num_threads(1)
    record(Path(sys.argv[1]))
