"""What the recorder found out about NaN and infinity: it repeats the first steps in which something is not finite."""

from __future__ import annotations

from typing import Any

from endoscope.findings.facts import Facts
from endoscope.schema.origin import Origin

EXTRA = "origins"  # under this name the recorder notes what it found out


def recorded_origins(facts: Facts, place: int) -> list[Origin]:
    """What the recorder noted at a step."""
    notes: Any = next((entry for at, entry in facts.extra(EXTRA) if at == place), [])
    return [Origin.from_dict(one) for one in notes if isinstance(one, dict)]
