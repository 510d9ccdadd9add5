"""Which findings probably follow from which others, so that causes are read first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from endoscope.findings.check import Check
from endoscope.findings.finding import INFO, Finding


def explained(findings: Sequence[Finding], checks: Iterable[Check]) -> list[Finding]:
    """The same findings; those that began no earlier than a likely cause say so, and stand behind the causes."""
    explained_by = {check.name: check.explained_by for check in checks}
    causes = [finding for finding in findings if finding.severity != INFO]
    found = []
    for finding in findings:
        likely = explained_by.get(finding.check, ())
        cause = next((one for one in causes if one.check in likely and _began_before(one, finding)), None)
        told = f"{cause.check} at {cause.node}" if cause is not None else ""
        found.append(replace(finding, follows=told))
    return sorted(found, key=lambda finding: finding.rank)


def _began_before(cause: Finding, symptom: Finding) -> bool:
    return cause.trial == symptom.trial and cause.first_step <= symptom.first_step
