"""What a small function decides, in words. Not in small_ear.py: callers in that file do not count as the user's."""

from __future__ import annotations

from typing import Any

from endoscope.analysis.branches import Decision
from endoscope.analysis.conditionals import Test
from tests.analysis.small_ear import Ear, listen


def told(function: Any, *values: Any) -> list[str]:
    """Every decision in one line: test, value, branch; operations of the test | of the branch."""
    ear, out = listen(function, *values)
    return [tell(ear, decision) for decision in ear.decisions(out)]


def tell(ear: Ear, found: Decision) -> str:
    asked = found.test.asked if isinstance(found.test, Test) else "?"
    nodes = f"{ear.named(found.test_nodes)} | {ear.named(found.branch_nodes)}".strip()
    return f"{asked}: {found.value} -> {found.branch}; {nodes}"
