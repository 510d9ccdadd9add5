"""A training that goes wrong when a test wants it to: all units behind its ReLU die."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import endoscope
from tests.findings.runs import blobs, classifier

DEAD = "units are zero for every sample"  # how the finding begins to speak of it
NODE = "1"  # the ReLU


class Faulty:
    """One trial, recorded at every step."""

    def __init__(self, root: Path, trial: str = "faulty") -> None:
        torch.manual_seed(3)
        self.model = classifier()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        self.run = endoscope.Run(root, trial=trial, when=endoscope.policies.every(1))
        self.run.watch(self.model, self.optimizer)
        self.steps = 0

    def advance(self, steps: int) -> None:
        for _ in range(steps):
            inputs, labels = blobs(self.steps)
            loss = nn.functional.cross_entropy(self.model(inputs), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.run.metric("loss", loss.item())
            self.steps += 1
        self.run.flush(10)

    def kill(self) -> None:
        """From now on no unit is above zero."""
        with torch.no_grad():
            nn.init.constant_(self.model[0].bias, -60.0)

    def close(self) -> None:
        self.run.close()


def record(root: Path) -> None:
    """Healthy at first, then dead."""
    training = Faulty(root)
    training.advance(6)
    training.kill()
    training.advance(14)
    training.close()
