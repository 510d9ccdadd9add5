"""What the ranks have written down beside their numbers: notes, gaps, modules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from endoscope.query.ranks import reasons
from endoscope.query.ranks.groups import Identity
from endoscope.query.ranks.metrics import Missing
from endoscope.query.ranks.sources import Source
from endoscope.query.recording import Gap, Note
from endoscope.schema.recording import NO_STEP


def modules(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of each address the first description; of everything else, too."""
    merged: dict[str, Any] = {}
    by_address: dict[str, Any] = {}
    for one in found:
        for module in one.get("modules", ()):
            by_address.setdefault(str(module.get("address")), module)
        merged = {**one, **merged}
    return {**merged, "modules": list(by_address.values())} if by_address else merged


def notes(sources: Sequence[Source]) -> list[Note]:
    """What several ranks have noted in the same words at the same step is said once."""
    found: dict[tuple[int, str], tuple[Note, list[int]]] = {}
    for source in sources:
        for note in source.recording.notes:
            found.setdefault((note.step, note.text), (note, []))[1].append(source.rank)
    everybody = {source.rank for source in sources}
    listed = []
    for note, ranks in found.values():
        is_of_all = set(ranks) == everybody
        listed.append(note if is_of_all else note._replace(text=f"{reasons.named(sorted(set(ranks)))}: {note.text}"))
    return sorted(listed, key=lambda note: note.time)


def gaps(sources: Sequence[Source], *, with_rank: bool) -> list[Gap]:
    """What the ranks could not record; what all of them say of the same is said once."""
    found: dict[tuple[int, str, str, str], tuple[Gap, list[int]]] = {}
    for source in sources:
        for gap in source.recording.gaps:
            found.setdefault((gap.step, gap.node, gap.of, gap.reason), (gap, []))[1].append(source.rank)
    everybody = {source.rank for source in sources}
    if not with_rank:
        return [gap for gap, _ in found.values()]
    return [
        gap if set(ranks) == everybody else gap._replace(reason=f"{gap.reason} ({reasons.named(sorted(set(ranks)))})")
        for gap, ranks in found.values()
    ]


def of_the_whole(
    why_not: Mapping[Identity, tuple[str, tuple[int, ...]]],
    lacking: Mapping[int, Sequence[int]],
    missing: Sequence[Missing],
    ranks: Sequence[int],
) -> list[Gap]:
    """What the ranks have recorded, and what makes up no whole."""
    ask = f"ask one rank: recording.rank({ranks[0] if ranks else 0})"
    found = [
        Gap(NO_STEP, node, of, f"there is no whole of all ranks: {why}; {ask}", 0.0)
        for (node, _, _, of), (why, _) in why_not.items()
    ]
    found += [
        Gap(step, "", "", f"there is no whole of all ranks: {reasons.not_there(gone)}; {ask}", 0.0)
        for step, gone in lacking.items()
    ]
    found += [
        Gap(one.first, one.name, "metric", f"there is no mean over ranks at {one.steps} steps, because "
            f"{reasons.named(one.ranks)} did not log it; {ask}", 0.0)
        for one in missing
    ]  # fmt: skip
    return list(dict.fromkeys(found))
