"""When a bug counts as found, when a finding is a false alarm, and how sure the shares are."""

import re
from math import sqrt
from typing import Any

from .registry import Bug

Finding = dict[str, Any]  # as `endoscope check --json` prints it


def alarms(findings: list[Finding]) -> list[Finding]:
    """What a user is warned of, in the order in which it is printed."""
    return [finding for finding in findings if finding["severity"] in ("warning", "error")]


def is_found(bug: Bug, findings: list[Finding]) -> bool:
    """At least one warning or error points at the place of the bug or names its cause."""
    return any(names_place(bug, finding) or names_cause(bug, finding) for finding in alarms(findings))


def cause_rank(bug: Bug, findings: list[Finding]) -> int | None:
    """The number, from 1, of the first warning or error that names the cause."""
    return next((number for number, finding in enumerate(alarms(findings), 1) if names_cause(bug, finding)), None)


def names_place(bug: Bug, finding: Finding) -> bool:
    nodes = [finding["node"], *finding["also"]]
    return any(node == place or node.startswith(place + ".") for place in bug.places for node in nodes)


def names_cause(bug: Bug, finding: Finding) -> bool:
    parts = [finding["check"].replace("_", " "), finding["title"], finding["detail"]]
    said = " ".join(parts + finding["causes"] + finding["remedies"])
    return re.search(bug.words, said, re.IGNORECASE) is not None


def as_text(finding: Finding) -> str:
    head = f"{finding['severity'].upper()} [{finding['check']}] {finding['title']} at {finding['node']}"
    return f"{head}: {finding['detail']}"


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The interval in which the true share lies with 95 % confidence."""
    if not trials:
        return 0.0, 1.0
    z, share = 1.96, successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials**2)) / (1 + z * z / trials)
    return middle - half, middle + half
