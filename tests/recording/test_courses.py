"""Steps that run like earlier ones are measured by one plan; others, and those that turn out otherwise, are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import endoscope
from endoscope.recording import measuring, meter
from endoscope.recording.courses import Course, Courses
from endoscope.recording.run import Run
from tests.recording.test_early import same

KINDS = ("plain", "transposed", "double", "heard", "extra", "early", "forward", "twice", "empty")


class Varied(nn.Module):
    """What comes is the same up to some point, and then not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.body = nn.Linear(8, 200), nn.Sequential(nn.Linear(200, 200), nn.Tanh())
        self.middle, self.extra, self.last = nn.Identity(), nn.Linear(200, 200), nn.Linear(200, 4)
        self.kind = "plain"

    def forward(self, x: Tensor) -> Tensor:
        if self.kind == "early":
            x = self.extra(x.repeat(1, 25))[:, :8]
        hidden = self.body(self.first(x))
        if self.kind == "extra":
            hidden = self.extra(hidden)
        hidden = self.middle(self.changed(hidden))
        if self.kind == "heard":
            hidden = hidden + 0
            hidden.mul_(2)
        out: Tensor = self.last(hidden[:0] if self.kind == "empty" else hidden)
        if self.kind == "unheard":
            torch._C._autograd._unsafe_set_version_counter((out,), (out._version + 1,))
        return out

    def changed(self, hidden: Tensor) -> Tensor:
        if self.kind == "transposed":
            return hidden.t().contiguous().t()
        return hidden.double().float() * 1 if self.kind == "double" else hidden


def recorded(folder: Path, steps: list[tuple[str, int]], keep: int) -> Any:
    torch.manual_seed(3)
    model = Varied()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with endoscope.Run(folder, trial="trial", when=1, keep=keep, strict=True) as run:
        run.watch(model, optimizer)
        for number, (kind, batch) in enumerate(steps):
            model.kind = kind
            x = torch.randn(batch, 8, generator=torch.Generator().manual_seed(number))
            for _ in range(2 if kind == "twice" else 1):
                out = model(x)
                if kind != "forward":
                    out.square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return endoscope.open(run.path)


@pytest.fixture(params=[(0, 0), (2**24, 2**24), (2**24, 20_000)])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many bytes are measured at once, in steps that are not known and in those that are."""
    monkeypatch.setattr(meter, "TOGETHER", request.param[0])
    monkeypatch.setattr(meter, "AS_BEFORE", request.param[1])


@pytest.mark.usefixtures("sizes")
@pytest.mark.parametrize("kind", KINDS)
def test_steps_that_turn_out_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    steps = [("plain", 6), ("plain", 6), (kind, 6), ("plain", 6), (kind, 6), (kind, 5), ("plain", 300), ("plain", 300)]
    early = recorded(tmp_path / "early", steps, 2)
    monkeypatch.setattr(Run, "_may_measure_early", lambda self, step: False)
    late = recorded(tmp_path / "late", steps, 2)
    same(early, late)
    for number in (1, 3):
        for node in ("first", "body", "body.1", "middle", "output"):
            for of in ("value", "gradient:loss"):
                assert (early.tensor(node, number, of=of) == late.tensor(node, number, of=of)).all()


@pytest.mark.usefixtures("sizes")
def test_a_value_that_was_overwritten_unheard_is_a_gap_in_its_step(tmp_path: Path) -> None:
    recording = recorded(tmp_path, [("plain", 6), ("plain", 6), ("unheard", 6), ("plain", 6)], 0)
    gaps = {(gap.step, gap.of) for gap in recording.gaps}
    assert gaps <= {(2, "value")}  # nothing is lost where each tensor is measured at once
    counts = recording.sql("select step, count(*) from stats group by step order by step").fetchall()
    assert len({count for step, count in counts if step != 2}) == 1


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows whenever something is measured that was not foreseen: how many rows."""
    rows: list[int] = []

    def counted(measure: Callable[..., Any]) -> Callable[..., Any]:
        def measured(requests: Any, *others: Any) -> Any:
            rows.append(len(requests))
            return measure(requests, *others)

        return measured

    monkeypatch.setattr(meter, "measure_and_keep", counted(meter.measure_and_keep))
    monkeypatch.setattr(measuring, "measure_and_keep", counted(measuring.measure_and_keep))
    return rows


@pytest.mark.parametrize("together", [0, 2**24])
def test_a_known_step_is_measured_by_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: list[int], together: int
) -> None:
    monkeypatch.setattr(meter, "TOGETHER", together)
    monkeypatch.setattr(meter, "AS_BEFORE", 20_000)
    recorded(tmp_path / "once", [("plain", 6), ("extra", 6), ("plain", 5)], 0)
    once = len(unknown)
    unknown.clear()
    recorded(tmp_path / "again", [("plain", 6), ("extra", 6), ("plain", 5), *[("plain", 5)] * 3, ("plain", 6)], 0)
    assert len(unknown) == once


@pytest.mark.parametrize("as_before", [0, 2**24])
def test_wherever_a_known_step_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: list[int], as_before: int
) -> None:
    """Also if nothing is left for its end."""
    monkeypatch.setattr(meter, "AS_BEFORE", as_before)
    recorded(tmp_path, [("plain", 6)] * 4, 2)
    assert len(unknown) == 1


class Sizes:
    """Batches of one size."""

    def begin_like(self, sizes: Any) -> bool:
        return bool(sizes == (0, 6, ()))

    def sizes(self) -> Any:
        return (0, 6, ())

    def dim_of(self, shape: Any, said: Any, call: int) -> int | None:
        return 0 if said is None else None


def test_a_course_can_be_cut_and_go_on_otherwise() -> None:
    batches: Any = Sizes()
    arrivals = [(1, "value", None, 0), (2, "value", None, 0), (1, "value", -1, 0), (1, "gradient:loss", None, -1)]
    came = [((6, 10_000), torch.float32, (10_000, 1))] * 4
    course = Course()
    course.add(arrivals, came, batches)
    assert course.rows == [(0, 0, None), (1, 0, None), (2, None, None), (3, 0, None), (3, None, None)]
    cut = course.until(2)
    assert (cut.arrivals, cut.rows) == (arrivals[:2], course.rows[:2])
    cut.add([arrivals[3], arrivals[0], arrivals[0]], came[:3], batches)
    assert cut.rows[2:] == [(2, 0, None), (3, 0, None), (4, 0, 3)]  # the last two came together
    assert len(course.rows) == 5


def test_equal_courses_are_kept_once_and_only_some_of_them() -> None:
    batches: Any = Sizes()
    known = Courses()

    def made(slot: int) -> Course:
        course = Course()
        course.add([(slot, "value", None, 0)], [((6, 2), torch.float32, (2, 1))], batches)
        return course

    first = known.kept(made(1), batches)
    known.kept(made(2), batches)
    assert known.kept(made(1), batches) is first
    assert known.known[0] is first and len(known.known) == 2
    for slot in range(100):
        known.kept(made(slot), batches)
    assert len(known.known) < 100
