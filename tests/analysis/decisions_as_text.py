"""What a small function decides, in words. Not in small_recorder.py: callers there do not count as the user's."""

from __future__ import annotations

from typing import Any

from endoscope.analysis.branching.branches import Decision
from endoscope.analysis.branching.conditionals import Test
from tests.analysis.small_recorder import SmallRecorder, listen


def told(function: Any, *values: Any) -> list[str]:
    """Every decision in one line: test, value, branch; operations of the test | of the branch."""
    recorder, out = listen(function, *values)
    return [tell(recorder, decision) for decision in recorder.decisions(out)]


def tell(recorder: SmallRecorder, found: Decision) -> str:
    asked = found.test.asked if isinstance(found.test, Test) else "?"
    nodes = f"{recorder.named(found.test_ops)} | {recorder.named(found.branch_ops)}".strip()
    return f"{asked}: {found.value} -> {found.branch}; {nodes}"
