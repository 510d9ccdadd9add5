"""What the recorder found out about NaN and infinity: it repeats the first steps in which something is not finite."""

from __future__ import annotations

from typing import Any

from endoscope.findings.facts import Facts
from endoscope.schema.origin import Origin

EXTRA = "origins"  # under this name the recorder notes what it found out
OUTLIERS = "outliers"  # the same, about samples that are unlike the others


def recorded_origins(facts: Facts, place: int) -> list[Origin]:
    """What the recorder noted at a step about NaN and infinity."""
    return _noted(facts, place, EXTRA)


def recorded_outliers(facts: Facts, place: int, sample: int | None) -> list[Origin]:
    """What it noted about a sample; without one, about any sample of the step."""
    return [one for one in _noted(facts, place, OUTLIERS) if sample is None or sample in one.samples]


def _noted(facts: Facts, place: int, name: str) -> list[Origin]:
    notes: Any = next((entry for at, entry in facts.extra(name) if at == place), [])
    return [Origin.from_dict(one) for one in notes if isinstance(one, dict)]
