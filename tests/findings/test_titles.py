"""The title of a finding is one sentence: the place once, what is seen, and since when."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import endoscope
from endoscope.findings.check import Seen
from endoscope.findings.facts import Facts
from endoscope.findings.finding import WARNING
from endoscope.findings.titles import title_of


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Steps 0, 2, … 18 of a small network."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with endoscope.Run(tmp_path_factory.mktemp("titles"), trial="t", when=2) as run:
        run.watch(model, optimizer)
        for _ in range(20):
            loss = model(torch.randn(6, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return Facts(endoscope.open(run.path))


def _title(facts: Facts, steps: list[int], title: str = "units are zero", **more: Any) -> str:
    tensor = next(one for one in facts.values.tensors if one.node == "1")
    given: dict[str, Any] = {"tensor": tensor, "types": ("",), **more}
    seen = Seen(
        severity=WARNING, title=title, detail="", value=1.0, threshold=0.0, steps=np.array(steps, np.int64), **given
    )
    return title_of(seen, facts)


def test_since_when(facts: Facts) -> None:
    assert _title(facts, list(range(0, 20, 2))) == "`1`: units are zero"
    assert _title(facts, list(range(8, 20, 2))) == "`1`: units are zero since step 8"
    assert _title(facts, [8]) == "`1`: units are zero at step 8"
    assert _title(facts, [4, 6, 8]) == "`1`: units are zero from step 4 to step 8"
    assert _title(facts, [4, 12, 18]) == "`1`: units are zero at 3 steps, first at step 4"


def test_what_is_about_the_whole_course_names_no_step(facts: Facts) -> None:
    assert _title(facts, [8, 10], of_the_run=True) == "`1`: units are zero"


def test_the_place_is_named_once(facts: Facts) -> None:
    assert _title(facts, [8], "the gradient of `1` is cut") == "the gradient of `1` is cut at step 8"
    assert _title(facts, [8], "the loss of rank 1 is high", tensor=None, node="the loss").startswith("the loss of rank")
    assert _title(facts, [8], "no step is there", tensor=None) == "no step is there at step 8"


def test_a_gradient_is_named_as_such(facts: Facts) -> None:
    [rows] = facts.gradients.values()
    tensor = next(one for one in rows.tensors if one.node == "1")
    assert _title(facts, [8], "infinity appears", tensor=tensor) == f"`1`, {tensor.key.of}: infinity appears at step 8"


def test_no_title_needs_another_sentence() -> None:
    """Words that point to something which only the context names."""
    folder = Path(endoscope.__file__).parent / "findings" / "checks"
    titles = [line for file in folder.glob("*.py") for line in file.read_text().splitlines() if "title=" in line]
    told = [line.partition("title=")[2] for line in titles]
    assert len(told) > 60
    assert not [text for text in told if any(word in text for word in (" here", "what it ", " this ", '"it ', '"Its '))]
