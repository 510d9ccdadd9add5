"""Singular values: only on request, right, and read back."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.errors import LookupFailed


def recorded(folder: Path, steps: int = 5, **watch: Any) -> tuple[nn.Module, list[np.ndarray], Any]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    weights = []
    with endoscope.Run(folder, trial="trial", when=1, keep=0, strict=True) as run:
        run.watch(model, optimizer, **watch)
        for _ in range(steps):
            weights.append(model[0].weight.detach().clone().numpy())
            model(torch.randn(7, 6)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
    return model, weights, endoscope.open(run.path)


def test_they_are_those_of_the_weights_before_the_update(tmp_path: Path) -> None:
    _, weights, recording = recorded(tmp_path, spectra=endoscope.policies.every(2))
    for step in (0, 2, 4):
        found = recording.spectrum("0.weight", step)
        values = np.linalg.svd(weights[step], compute_uv=False)
        shares = values / values.sum()
        assert found.singular_values == pytest.approx(values, rel=1e-5)
        assert found.effective_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()), rel=1e-5)


def test_activations_are_matrices_of_samples_by_features(tmp_path: Path) -> None:
    _, _, recording = recorded(tmp_path, spectra=1)
    assert len(recording.spectrum("0", 1).singular_values) == 5
    assert 1 <= recording.spectrum("1", 1).effective_rank <= 5


def test_other_steps_and_tensors_have_none_and_say_why(tmp_path: Path) -> None:
    _, _, recording = recorded(tmp_path, spectra=endoscope.policies.every(2))
    with pytest.raises(LookupFailed, match="only on request"):
        recording.spectrum("0.weight", 1)
    with pytest.raises(LookupFailed, match="only matrices have them"):
        recording.spectrum("0.bias", 0)


def test_nothing_is_computed_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from endoscope.recording.output import spectra

    monkeypatch.setattr(spectra, "spectrum", lambda tensor: pytest.fail("it was computed"))
    _, _, recording = recorded(tmp_path)
    with pytest.raises(LookupFailed, match="spectra="):
        recording.spectrum("0.weight", 0)
