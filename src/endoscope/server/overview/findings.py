"""What looks wrong in any trial, as one list: the same finding of many trials is one line.

Which findings are the same: one check, at one node, of one kind of value. The worst of them stands for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from endoscope.server import wire
from endoscope.server.routes.findings import described, silenced_by

if TYPE_CHECKING:
    from endoscope.findings.silence import Silenced
    from endoscope.server.findings_process import Checked

_WORST = {"error": 0, "warning": 1, "info": 2}


class Found(NamedTuple):
    """What is known about one trial."""

    result: Checked | None
    is_checking: bool
    silenced: Sequence[Silenced]


class _Place(NamedTuple):
    """One finding of one trial; smaller is worse."""

    severity: int
    rank: int  # in its trial
    trial: int
    finding: wire.Finding
    followers: int


def together(found: Mapping[str, Found]) -> wire.OverviewFindings:
    """Of all trials, in the order that is given."""
    results = [one.result for one in found.values()]
    lists = [_heard(one) for one in found.values()]
    groups: dict[tuple[str, str, str, str], list[_Place]] = {}
    for trial, findings in enumerate(lists):
        followers = Counter(one["follows"] for one in findings if one["follows"])
        for rank, one in enumerate(findings):
            if not one["follows"] and one["severity"] != "info":
                place = _Place(_WORST[one["severity"]], rank, trial, one, followers[one["id"]])
                groups.setdefault((one["check"], one["node"], one["role"], one["of"]), []).append(place)
    names = list(found)
    return wire.OverviewFindings(
        findings=[_line(names, group) for group in sorted(groups.values(), key=_order)],
        checks=max((one["checks"] for one in results if one), default=0),
        checking=any(one.is_checking for one in found.values()),
        trials=names,
        checked=[one is not None for one in results],
        errors=[_count(findings, "error") for findings in lists],
        warnings=[_count(findings, "warning") for findings in lists],
        notices=[_count(findings, "info") for findings in lists],
        lastStep=[one["lastStep"] if one else None for one in results],
        problems=[(one["problem"] or "") if one else "" for one in results],
    )


def _heard(found: Found) -> list[wire.Finding]:
    """Without what nobody wants to hear of."""
    if found.result is None:
        return []
    return [one for one in described(found.result["findings"]) if silenced_by(one, found.silenced) is None]


def _order(group: list[_Place]) -> tuple[int, int, int]:
    worst = _worst(group)
    return worst.severity, worst.rank, -len(group)


def _worst(group: list[_Place]) -> _Place:
    return min(group, key=lambda place: (place.severity, place.rank, place.trial))


def _line(names: list[str], group: list[_Place]) -> wire.OverviewFinding:
    worst = _worst(group)
    return wire.OverviewFinding(
        finding=worst.finding, trial=names[worst.trial], trials=[place.trial for place in group],
        followers=worst.followers,
    )  # fmt: skip


def _count(findings: Sequence[wire.Finding], severity: str) -> int:
    """Causes, not what follows from them."""
    return sum(one["severity"] == severity and not one["follows"] for one in findings)
