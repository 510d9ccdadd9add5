"""What is held of a captured step, and how often it is copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording.hooks.captured import Captured


def test_a_result_with_two_names_is_copied_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container returns what its last module has returned, and what comes next overwrites it."""
    copies: list[Tensor] = []
    copy = Captured._copy

    def counted(self: Any, tensor: Tensor) -> Tensor:
        copies.append(tensor)
        return copy(self, tensor)

    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), nn.ReLU(inplace=True))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(tmp_path, trial="copies", when=1, strict=True) as run:
        run.watch(model, optimizer)
        for number in range(3):
            if number == 2:  # hooked; the steps before were traced
                monkeypatch.setattr(Captured, "_copy", counted)
            optimizer.zero_grad()
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    recording = endoscope.open(run.path)
    assert len(copies) == len({id(tensor) for tensor in copies}) > 0
    for node in ("0", "0.1"):
        assert recording.series(node, "min").steps.tolist() == [0, 1, 2]
    assert not recording.gaps
