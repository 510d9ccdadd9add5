"""A small recording with something of everything that the page can show, made by training for a few seconds.

python -m tests.browser.recordings FOLDER        two trials, as many steps as the benchmarks and people like to see
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import endoscope

SHORT, LONG = 3, 6  # numbers in a sequence
TRIALS = ("plain", "leaky")
LOSSES = ("answer", "sums")
SEQUENCES = 2  # per sample, each with a partial sum of its own
BATCH = 24


class Adder(nn.Module):
    """Reads numbers one after the other and says whether the sum of each sequence is positive."""

    def __init__(self, leaky: bool, width: int = 16) -> None:
        super().__init__()
        self.read = nn.Linear(SEQUENCES, width)
        self.cell = nn.GRUCell(width, width)
        self.sums = nn.Linear(width, SEQUENCES)
        self.bend = nn.LeakyReLU() if leaky else nn.Identity()

    def forward(self, numbers: Tensor) -> tuple[Tensor, list[Tensor]]:
        state = numbers.new_zeros(numbers.shape[0], self.cell.hidden_size)
        partial = []
        for position in range(numbers.shape[1]):
            state = self.cell(self.read(numbers[:, position]), state)
            partial.append(self.sums(state))
        return torch.sigmoid(self.bend(partial[-1])), partial


class Training:
    """One trial. `advance` trains some more, so that a test can look on while it runs."""

    def __init__(self, root: Path, trial: str, every: int) -> None:
        torch.manual_seed(TRIALS.index(trial) if trial in TRIALS else 7)
        self.model = Adder(leaky=trial == "leaky")
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=3e-3)
        config = {"lr": 3e-3, "batch": BATCH, "leaky": trial == "leaky", "data": {"lengths": [SHORT, LONG], "seed": 0}}
        self.run = endoscope.Run(root, trial=trial, when=endoscope.policies.every(every), keep=4, config=config)
        self.run.watch(self.model, self.optimizer)
        self.steps = 0

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            self._step("long" if self.steps % 3 == 2 else "short")
            self.steps += 1

    def _step(self, type_: str) -> None:
        numbers = torch.randn(BATCH, LONG if type_ == "long" else SHORT, SEQUENCES)
        truth = numbers.cumsum(1)
        with self.run.step(type=type_) as step:
            step.tag("numbers", numbers, kind="input")
            answer, partial = self.model(numbers)
            for position, found in enumerate(partial):
                for sequence in range(SEQUENCES):
                    step.tag("partial sum", found[:, sequence], role=f"sequence {sequence + 1}")
                    step.tag("true sum", truth[:, position, sequence], role=f"sequence {sequence + 1}", kind="target")
            wanted = step.tag("wanted", (truth[:, -1] > 0).float(), kind="target")
            wrong = nn.functional.binary_cross_entropy(answer, wanted, reduction="none").mean(1)
            answer_loss = step.tag("answer loss", wrong.mean(), kind="loss")
            off = torch.stack([(found - truth[:, at]).square().mean() for at, found in enumerate(partial)])
            sums_loss = step.tag("sums loss", 0.1 * off.mean(), kind="loss")
            self.optimizer.zero_grad()
            with step.gradients(LOSSES[0]):
                answer_loss.backward(retain_graph=True)
            with step.gradients(LOSSES[1]):
                sums_loss.backward()
            self.optimizer.step()
            self._say(step, answer_loss, sums_loss, wanted, answer)

    def _say(
        self, step: endoscope.Step, answer_loss: Tensor, sums_loss: Tensor, wanted: Tensor, answer: Tensor
    ) -> None:
        positive = wanted.sum(1).int().tolist()
        step.decide(categories=[f"{count} positive" for count in positive])
        step.config(lr=self.optimizer.param_groups[0]["lr"])
        step.metric("loss", answer_loss + sums_loss)
        step.metric("loss/answer", answer_loss)
        step.metric("loss/sums", sums_loss)
        step.metric("accuracy", ((answer > 0.5) == wanted.bool()).float().mean())
        if self.steps % 100 == 0:
            self.run.note(
                f"step {self.steps}: accuracy on the batch is {(answer.round() == wanted).float().mean():.2f}"
            )

    def close(self) -> None:
        self.run.close()


def record(root: Path, steps: int, every: int) -> None:
    """Both trials; `every` counts the steps of each type."""
    for trial in TRIALS:
        training = Training(root, trial, every)
        training.advance(steps)
        training.run.note("the end of the training")
        training.close()


if __name__ == "__main__":
    torch.set_num_threads(1)
    record(Path(sys.argv[1]), steps=2500, every=40)
