"""Steps that are built alike share the arrangement of their rows, and others do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording.measuring import _Found


class Named(nn.Module):
    """A large result with several names, and a module that is not always called."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 600), nn.Tanh())
        self.extra = nn.Linear(600, 600, bias=False)
        self.uses_extra = False

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.body(x)
        return self.extra(hidden) if self.uses_extra else hidden


@pytest.fixture
def looked_for(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by one whenever the rows of a step had to be worked out."""
    times: list[int] = []
    look = _Found.looked_for

    def counted(self: _Found, structure: Any) -> Any:
        times.append(len(times))
        return look(self, structure)

    monkeypatch.setattr(_Found, "looked_for", counted)
    return times


@pytest.mark.parametrize("keep", [0, 2])
def test_rows_are_worked_out_once_for_each_kind_of_step(tmp_path: Path, looked_for: list[int], keep: int) -> None:
    torch.manual_seed(0)
    model = Named()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches, norms = [100, 100, 90, 100, 90, 100], []
    with endoscope.Run(tmp_path, trial="t", when=1, keep=keep, strict=True) as run:
        run.watch(model, optimizer)
        for number, batch in enumerate(batches):
            model.uses_extra = number == 3
            out = model(torch.randn(batch, 4))
            out.retain_grad()
            out.square().sum().backward()
            norms.append((float(out.detach().norm()), float(out.grad.norm())))
            optimizer.step()
            optimizer.zero_grad()
    assert len(looked_for) == 3  # two sizes of the batch, and one step with another module
    recording = endoscope.open(run.path)
    last = ["extra" if number == 3 else "body.1" for number in range(len(batches))]
    for number, (value, gradient) in enumerate(norms):
        for node in {last[number], "output"}:
            rows = recording.sql(
                f"select of, norm, count from stats where node = '{node}' and step = {number} order by of"
            ).fetchall()
            assert [row[0] for row in rows] == ["gradient:loss", "value"]
            assert [row[1] for row in rows] == pytest.approx([gradient, value], rel=1e-4)
            assert [row[2] for row in rows] == [600 * batches[number]] * 2
    counts = recording.sql("select step, count(*) from stats group by step order by step").fetchall()
    assert len({count for step, count in counts if step != 3}) == 1
    query = "select step, count(*) from samples where node = 'body' and of = 'value' group by step order by step"
    assert recording.sql(query).fetchall() == list(enumerate(batches))
