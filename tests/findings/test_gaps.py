"""Gaps are summed up by their reasons."""

from __future__ import annotations

import pytest

from endoscope.findings.gaps import as_sentence, summed_up, without_number
from endoscope.query.recording import Gap


def test_the_same_reason_at_other_steps_is_one() -> None:
    gaps = [Gap(n, "queue", "", f"step {n} was left out: the queue to the writer was full", 0.0) for n in range(12)]
    gaps.insert(3, Gap(3, "encoder", "value", "it is of 3 kinds", 0.0))
    gaps.append(Gap(4, "decoder", "value", "it is of 3 kinds", 0.0))
    first, second = summed_up(gaps)
    assert first.times == 12 and first.nodes == ("queue",)
    assert first.text == "step … was left out: the queue to the writer was full"
    assert second == ("it is of 3 kinds", 2, ("encoder", "decoder"))


def test_none() -> None:
    assert summed_up([]) == []


@pytest.mark.parametrize(
    ("reason", "without"),
    [("Step 12 failed", "Step … failed"), ("footstep 3", "footstep 3"), ("steps 3 to 5", "steps 3 to 5")],
)
def test_only_the_number_of_a_step_is_taken_out(reason: str, without: str) -> None:
    assert without_number(reason) == without


def test_sentences() -> None:
    assert [as_sentence(text) for text in ("the disk is full", "Free some.", "cut…", "")] == [
        "The disk is full.", "Free some.", "Cut…", "",
    ]  # fmt: skip
