"""Why something has no whole, in words."""

from __future__ import annotations

from collections.abc import Sequence

from endoscope.query.ranks.placement import BAD_SHARDS, IS_LOCAL, IS_PARTIAL, UNTIED, Arrangement

DISAGREE = "ranks that should have the same tensor have different ones"
NO_MERGE = "this statistic of a whole does not follow from those of its parts"
#: Whatever is recorded, there will be no whole.
NEVER_WHOLE = (UNTIED, IS_LOCAL, IS_PARTIAL, BAD_SHARDS, NO_MERGE)
_MOST_SHOWN = 8


def of(arrangement: Arrangement, missing: Sequence[int]) -> str:
    """Empty if nothing stands against a whole."""
    return arrangement.reason or (not_there(missing) if missing else "")


def not_there(ranks: Sequence[int]) -> str:
    return f"{named(ranks)} did not record it at this step"


def named(ranks: Sequence[int]) -> str:
    """rank 1; ranks 1, 2 and 5 more"""
    shown = ", ".join(map(str, ranks[:_MOST_SHOWN]))
    more = len(ranks) - _MOST_SHOWN
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}" + (f" and {more} more" if more > 0 else "")
