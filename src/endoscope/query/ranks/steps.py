"""Which recorded steps of which ranks are one step, and what is known of it.

attempts of a rank ─► the step that counts: of a number that several have recorded, the latest
ranks ─► steps of the same number (and type, where a rank has several of it) are one
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from endoscope.query.ranks.sources import Source
from endoscope.query.steps import Step, StepIndex

_MAY_COME_SECS = 10.0  # so long a step is not shown while a rank that is running has not got to it
#: Members of `extra` that do not merge: whoever wants them asks one rank.
OF_ONE_RANK = ("spectra", "cosines")
_Identity = tuple[int, str | None, int]


class Counted(NamedTuple):
    """A recorded step of one rank."""

    source: Source
    step: Step


class WholeSteps(StepIndex):
    """The recorded steps of all ranks together. Ordinals count them; a step keeps its own when others come."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[_Identity, int] = {}
        self.parts: dict[int, dict[int, Counted]] = {}  # ordinal -> rank -> what counts
        self.waits = False  # for a rank that may still record a step that others have

    def update(self, sources: Sequence[Source]) -> None:
        """Put together what the sources hold now."""
        of_rank = {rank: _that_count([one for one in sources if one.rank == rank]) for rank in _ranks(sources)}
        _leave_out_what_was_restarted(of_rank, sources)
        found: dict[_Identity, dict[int, Counted]] = {}
        several = {
            number for by_number in of_rank.values() for number, counted in by_number.items() if len(counted) > 1
        }
        for rank, by_number in of_rank.items():
            for number, counted in by_number.items():
                for identity, one in _identified(number, counted, number in several):
                    found.setdefault(identity, {})[rank] = one
        running = {source.rank: source for source in sources if source.is_last and source.is_running}
        late = [identity for identity, parts in found.items() if _may_grow(identity[0], parts, running)]
        self.waits = bool(late)
        for identity in late:
            del found[identity]
        for identity in sorted(found, key=lambda one: (one[0], min(part.step.time for part in found[one].values()))):
            self._known.setdefault(identity, len(self._known))
        self.parts = {self._known[identity]: parts for identity, parts in found.items()}
        self.list = [_together(ordinal, self.parts[ordinal]) for ordinal in sorted(self.parts)]
        self.superseded = [step for source in sources for step in source.steps.superseded]
        self._index({})

    def join_samples(self, ordinal: int, batches: Sequence[tuple[int, int]]) -> None:
        """`batches` are the ranks that had other samples, each with their number; these follow each other."""
        place = next(place for place, step in enumerate(self.list) if step.ordinal == ordinal)
        step, parts = self.list[place], self.parts[ordinal]
        raw: list[int] = []
        categories: list[str] = []
        first = 0
        for rank, size in batches:
            raw += [first + sample for sample in parts[rank].step.raw_samples]
            own = parts[rank].step.categories
            categories += own if len(own) == size else [""] * size
            first += size
        categories = categories if any(categories) else []
        self.list[place] = replace(step, raw_samples=tuple(raw), categories=tuple(categories))


def _ranks(sources: Sequence[Source]) -> list[int]:
    return sorted({source.rank for source in sources})


def _that_count(attempts: Sequence[Source]) -> dict[int, list[Counted]]:
    """Number -> the steps of a rank: those of the latest attempt that has recorded it."""
    found: dict[int, list[Counted]] = {}
    for source in attempts:  # a later one takes the place of an earlier one
        lowest = source.went_back_to
        if lowest is not None:
            found = {number: counted for number, counted in found.items() if number < lowest}
        own: dict[int, list[Counted]] = {}
        for step in source.steps.list:
            own.setdefault(step.number, []).append(Counted(source, step))
        found |= own
    return found


def _leave_out_what_was_restarted(of_rank: dict[int, dict[int, list[Counted]]], sources: Sequence[Source]) -> None:
    """A step that one rank recorded before a restart does not go with what others recorded after it.

    A rank that was not restarted itself has gone on meanwhile, and what it recorded is good.
    """
    last = {rank: max(source.attempt for source in sources if source.rank == rank) for rank in of_rank}
    newest: Counter[int] = Counter()
    for by_number in of_rank.values():
        for number, counted in by_number.items():
            newest[number] = max(newest[number], counted[0].source.attempt)
    for rank, by_number in of_rank.items():
        for number in list(by_number):
            if by_number[number][0].source.attempt < min(newest[number], last[rank]):
                del by_number[number]


def _identified(number: int, counted: Sequence[Counted], is_ambiguous: bool) -> list[tuple[_Identity, Counted]]:
    """Where each rank has one step of a number, these are one; else those of the same type."""
    if not is_ambiguous:
        return [((number, None, 0), counted[0])]
    times: Counter[str] = Counter()
    found: list[tuple[_Identity, Counted]] = []
    for one in counted:
        found.append(((number, one.step.type, times[one.step.type]), one))
        times[one.step.type] += 1
    return found


def _may_grow(number: int, parts: Mapping[int, Counted], running: Mapping[int, Source]) -> bool:
    """Whether a rank that is running may record this step in a moment."""
    behind = [rank for rank, source in running.items() if rank not in parts and source.last_number < number]
    return bool(behind) and time.time() - max(part.step.time for part in parts.values()) < _MAY_COME_SECS


def _together(ordinal: int, parts: Mapping[int, Counted]) -> Step:
    steps = [part.step for part in parts.values()]
    first = steps[0]
    if len(steps) == 1:
        return replace(first, ordinal=ordinal)
    return replace(
        first,
        ordinal=ordinal,
        type=_said(step.type for step in steps),
        why=_said(step.why for step in steps),
        time=min(step.time for step in steps),
        recording_seconds=max(step.recording_seconds for step in steps),
        graph=first.graph if len({step.graph for step in steps}) == 1 else "+".join(dict.fromkeys(
            step.graph for step in steps if step.graph)),
        passes=max(step.passes for step in steps),
        iteration=max(step.iteration for step in steps),
        skipped=any(step.skipped for step in steps),
        raw_file=next((step.raw_file for step in steps if step.raw_file), ""),
        config_json=_common([step.config_json for step in steps]),
        extra_json=_common([step.extra_json for step in steps]),
    )  # fmt: skip


def _said(words: Any) -> str:
    return " / ".join(dict.fromkeys(words))


def _common(texts: Sequence[str]) -> str:
    """The members of JSON objects that are the same in all of them, and do not speak of one rank alone."""
    if len(set(texts)) == 1 and not any(f'"{name}"' in texts[0] for name in OF_ONE_RANK):
        return texts[0]
    first, *others = map(json.loads, texts)
    same = [name for name in first if all(first[name] == other.get(name) for other in others)]
    return json.dumps({name: first[name] for name in same if name not in OF_ONE_RANK})
