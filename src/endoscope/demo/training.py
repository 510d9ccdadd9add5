"""The training loop of the demo, and how it is recorded. Every line that mentions `run` or `step` is for Endoscope.

begin_run ─► train ─► train_step, again and again ─► whoever began the run closes it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from os import PathLike

import torch
from torch.nn.functional import binary_cross_entropy

import endoscope
from endoscope.demo import task
from endoscope.demo.network import Network

TRIALS = {"suspect": True, "repaired": False}  # name -> whether an activation stands behind the last layer
RECORDED = endoscope.policies.decaying(dense_steps=10, growth=1.08)  # of each type of step: many at first, fewer later
SAMPLES_KEPT = 6  # whose raw values are kept, of each recorded step
SAID_EVERY = 400  # steps


@dataclass(frozen=True, slots=True)
class Settings:
    """What both trials have in common."""

    steps: int = 1200
    samples: int = 32  # in a batch
    width: int = 32  # of the network's layers
    learning_rate: float = 0.003
    seed: int = 0


def begin_run(root: str | PathLike[str], trial: str, settings: Settings) -> endoscope.Run:
    """A new trial below the folder `root`; if there is one of this name, the new one gets another."""
    return endoscope.Run(root, trial=trial, when=RECORDED, keep=SAMPLES_KEPT, config=asdict(settings))


def train(run: endoscope.Run, settings: Settings, *, activate_last: bool, say: Callable[[str], None]) -> None:
    """Train one network and record it; `say` is told how it goes."""
    torch.manual_seed(settings.seed)
    model = Network(settings.width, activate_last=activate_last)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    generator = torch.Generator().manual_seed(settings.seed)

    run.watch(model, optimizer)
    accuracy, milestones = 0.5, [0.95, 0.9, 0.8, 0.7]
    for number in range(settings.steps):
        kind = list(task.LENGTHS)[number % len(task.LENGTHS)]
        numbers = task.make_numbers(settings.samples, task.LENGTHS[kind], generator)
        accuracy += 0.02 * (train_step(run, model, optimizer, numbers, kind) - accuracy)  # of some 50 steps
        if milestones and accuracy > milestones[-1]:
            run.note(f"{milestones.pop():.0%} of the answers are right")
        if (number + 1) % SAID_EVERY == 0:
            say(f"step {number + 1}: {accuracy:.1%} of the answers are right")
    run.note(f"the end: {accuracy:.1%} of the answers are right")


def train_step(
    run: endoscope.Run, model: Network, optimizer: torch.optim.Optimizer, numbers: torch.Tensor, kind: str
) -> float:
    """One step of training, recorded if it is its turn; returns the share of right answers."""
    with run.step(type=kind) as step:
        # A node of our own with a tensor for each position, of which one is chosen by its role.
        partial_sums = [
            step.tag("partial sums", sums, role=f"after number {count}")
            for count, sums in enumerate(numbers.cumsum(dim=1).unbind(dim=1), start=1)
        ]
        targets = step.tag("target", task.is_positive(torch.stack(partial_sums, dim=1)), kind="target")

        said = model(numbers)  # one probability for each partial sum, like the targets
        losses = binary_cross_entropy(said, targets, reduction="none").mean(dim=2)  # [sample, position]
        final, interim = losses[:, -1], losses[:, :-1]

        # The answer at the end is what counts. Answers on the way should be right, too: that makes a second loss.
        optimizer.zero_grad()
        with step.gradients("final loss"):
            final.mean().backward(retain_graph=True)
        with step.gradients("interim loss"):
            interim.mean().backward()
        optimizer.step()

        right = ((said > 0.5) == (targets > 0.5))[:, -1].float().mean()
        step.metric("final loss", final)
        step.metric("interim loss", interim.mean())
        step.metric("accuracy", right)
        step.decide(categories=[task.category(answers) for answers in targets[:, -1]])
        return float(right)
