"""Where the time of steps goes, by a clock that the test turns."""

from __future__ import annotations

import pytest

from endoscope.recording.output import times
from endoscope.recording.output.times import Times, block_of
from endoscope.schema.recording import TimesRecord


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(times, "_clock", made)
    return made


def step(found: Times, clock: Clock, number: int, micro_batches: int = 1, recording: float = 0.0) -> None:
    for _ in range(micro_batches):
        clock.after(1.0)
        found.forward_begins()
        clock.after(2.0)
        found.forward_ends()
        clock.after(4.0)
    found.update_begins()
    clock.after(8.0)
    found.update_ends()
    clock.after(recording)
    found.step_ends(number, "train", recording > 0, recording)


def test_parts_of_a_step(clock: Clock) -> None:
    rows: list[TimesRecord] = []
    found = Times(rows.append)
    step(found, clock, 0)
    step(found, clock, 1, micro_batches=3)
    step(found, clock, 2, recording=50.0)
    step(found, clock, 3)  # recording the step before is not waiting for data
    found.flush()
    assert [(r.step, r.captured, r.data, r.forward, r.backward, r.update) for r in rows] == [
        (0, 0, 0.0, 2.0, 4.0, 8.0), (1, 0, 1.0, 6.0, 14.0, 8.0), (2, 1, 1.0, 2.0, 4.0, 8.0), (3, 0, 1.0, 2.0, 4.0, 8.0),
    ]  # fmt: skip
    assert all(r.seconds == r.longest == r.data + r.forward + r.backward + r.update for r in rows)


def test_evaluating_is_not_waiting_for_data(clock: Clock) -> None:
    rows: list[TimesRecord] = []
    found = Times(rows.append)
    for number in range(2):
        step(found, clock, number)
        clock.after(1000.0)
        found.interrupted()
    found.flush()
    assert [row.data for row in rows] == [0.0, 0.0]


def test_blocks_grow_and_are_the_same_wherever_one_begins(clock: Clock) -> None:
    rows: list[TimesRecord] = []
    found = Times(rows.append)
    for number in range(3000):
        step(found, clock, number)
    found.flush()
    assert sum(row.steps for row in rows) == 3000 and len(rows) < 1400
    assert [row.step for row in rows] == sorted({block_of(number) for number in range(3000)})
    assert {block_of(number) for number in range(1024, 1032)} == {1024, 1028}
    assert block_of(511) == 511 and block_of(513) == 512
