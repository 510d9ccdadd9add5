"""The sentences of a run: one when it begins, a status line if that is wanted, and a block when it ends."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from endoscope.recording.deciding.budget import Budget
    from endoscope.recording.deciding.schedule import Schedule

NO_MODEL = (
    "no model was watched, so only metrics and notes were recorded. Call run.watch(model, optimizer) before the loop."
)
NO_STEP = (
    "no training step was recorded. A step begins when the watched model is called in training mode, model(x), and not "
    "under torch.no_grad(); `endoscope check` says more."
)
WITHDRAWN = "the script ended before anything was recorded, so the empty trial was removed."
_MOST_FINDINGS = 5
_MOST_BYTES = 256 * 2**20  # of a recording that is checked when the run ends: half a second or so


def beginning(path: str, wanted: str, resumed: bool) -> str:
    """Which folder, and how to look at it."""
    root, name = os.path.split(path)
    taken = f" as {name}, because there is a {wanted} already" if name != wanted else ""
    verb = "going on with" if resumed else "recording into"
    return f"{verb} {path}{taken}. To look at it:  endoscope show {shortest(root)}"


def commands(path: str) -> str:
    """The last line."""
    return f"what looks wrong:  endoscope check {shortest(path)}    the page:  endoscope show {shortest(path)}"


def cost(budget: Budget | None, seconds: float) -> str:
    """What recording took."""
    if budget is None:
        return f"{seconds:.2g} s"
    percent = 100 * budget.share
    return f"{percent:.0f} % of the time" if percent >= 10 else f"{percent:.2g} % of the time"


def allowed(budget: Budget | None, credit_seconds: float) -> str:
    """What recording may take."""
    return "" if budget is None else f" (limit: {credit_seconds:g} s at the start, then {100 * budget.fraction:g} %)"


def counts(schedule: Schedule) -> tuple[int, int]:
    """Steps seen, and steps recorded."""
    found = schedule.counts().values()
    return sum(seen for seen, _ in found), sum(recorded for _, recorded in found)


def left_out(seen: int, recorded: int, budget: Budget | None, *, was_chosen: bool) -> str:
    """Why most steps are not there, and what to type for all of them; empty if they are."""
    if not recorded:
        return (
            f"none of the {seen} steps was recorded. To record every step:  endoscope.Run(…, when=1)"
            if seen
            else NO_STEP
        )
    if budget is None or 2 * recorded >= seen:
        return ""
    allowed = f"a budget of {100 * budget.fraction:g} % of the training time"
    why = (
        f"`when` and {allowed} did not allow more"
        if was_chosen
        else f"by default later steps are recorded less often, to stay within {allowed}"
    )
    return (
        f"{seen - recorded} of {seen} steps were not recorded: {why}. To record every step:  endoscope.Run(…, when=1)"
    )


def findings(path: str, size: int) -> list[str]:
    """What looks wrong in a recording that is closed, one line each; empty if nobody looked."""
    import endoscope

    if size > _MOST_BYTES:
        return []
    found = [one for one in endoscope.diagnose(path) if one.severity != "info"]
    lines = [f"    {one.severity.upper()}  {one.title}" for one in found]
    more = [f"    … and {len(found) - _MOST_FINDINGS} more"] if len(found) > _MOST_FINDINGS else []
    if not found:
        return ["no error and no warning was found in what was recorded."]
    return ["this looks wrong:", *lines[:_MOST_FINDINGS], *more]


def status(counted: tuple[int, int], cost: str, size: int, found: str) -> str:
    """Of a run that goes on, in one line."""
    seen, recorded = counted
    return ", ".join(filter(None, [f"{seen} steps", f"{recorded} recorded", cost, human_bytes(size), found]))


def counted_findings(severities: Sequence[str]) -> str:
    """1 error, 2 warnings"""
    kinds = {kind: severities.count(kind) for kind in ("error", "warning")}
    told = [f"{count} {kind}{'s' * (count != 1)}" for kind, count in kinds.items() if count]
    return ", ".join(told) or "nothing looks wrong so far"


def human_bytes(size: int) -> str:
    """1234567 -> 1.2 MB"""
    return f"{size / 1e3:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def shortest(path: str) -> str:
    """As short as it can be typed here."""
    try:
        return min(path, os.path.relpath(path), key=len)
    except (OSError, ValueError):  # the current folder is gone, or is on another drive
        return path
