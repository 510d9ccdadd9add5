"""The recorded steps: what is known about each, and how a number that somebody typed finds its step."""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from endoscope.errors import BadArgument, LookupFailed
from endoscope.store.reader import RankReader
from endoscope.store.sealed import load
from endoscope.store.streams import to_list

_MOST_SHOWN = 5
UNKNOWN = np.iinfo(np.int64).min  # number of a step whose row is lost, or that was thinned


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded step."""

    number: int
    type: str
    time: float  # unix seconds
    why: str  # why it was recorded
    recording_seconds: float  # what recording it cost
    graph: str  # hash of its graph
    passes: int  # forward passes in it
    tensors: int  # how many were recorded
    raw_samples: tuple[int, ...]  # samples that were kept raw
    categories: tuple[str, ...]  # of these samples
    ordinal: int  # n-th recorded step of the trial, from 0
    iteration: int  # returns to the first optimizer so far; -1: none has stepped, or an older recording
    skipped: bool  # its gradients were thrown away, unused
    raw_file: str = field(repr=False)
    config_json: str = field(repr=False)
    extra_json: str = field(repr=False)

    @property
    def config(self) -> dict[str, Any]:
        """What the user said about the step."""
        return load(self.config_json) or {}

    @property
    def extra(self) -> dict[str, Any]:
        """What else was recorded: cosines between the gradients of several losses, …"""
        return load(self.extra_json) or {}


class StepIndex:
    """Steps by their number, by their type, and by the order in which they were recorded."""

    def __init__(self) -> None:
        self.list: list[Step] = []
        self.superseded: list[Step] = []
        self.types: list[str] = []
        self._ordinals_of: dict[int, list[int]] = {}  # number -> places in `list`
        self._ordinals = np.empty(0, np.int64)  # of all steps, ascending
        self._numbers = np.array([UNKNOWN])  # of these steps; the last is for others
        self._type_codes = np.zeros(1, np.int64)

    def at(self, number: int | None, type_: str | None) -> list[Step]:
        """The steps with a number, newest first; an error that says what is near if there is none."""
        if number is None:
            raise BadArgument(self._which_step())
        found = [self.list[place] for place in self._ordinals_of.get(number, [])]
        if type_ is not None:
            self.check_type(type_)
            found = [step for step in found if step.type == type_]
        if not found:
            raise LookupFailed(self._no_such_step(number, type_))
        return found[::-1]

    def _which_step(self) -> str:
        if not self.list:
            return "This asks for one step, but no step was recorded. `endoscope check` says why."
        first, last = self.list[0].number, self.list[-1].number
        return (
            f"This needs the number of a step: step={last}. Recorded are {len(self.list)} steps from {first} to {last}."
        )

    def check_type(self, type_: str) -> None:
        if type_ not in self.types:
            known = ", ".join(map(repr, self.types)) or "none"
            raise LookupFailed(f"No step of type {type_!r} was recorded. Types: {known}.")

    def numbers_of(self, ordinals: np.ndarray) -> np.ndarray:
        """The numbers of recorded steps; UNKNOWN for those that are not listed."""
        return np.asarray(self._numbers[self._places(ordinals)])

    def types_of(self, ordinals: np.ndarray) -> np.ndarray:
        """Empty for steps whose own row is lost."""
        names = np.array([*self.types, ""], dtype=object)
        return np.asarray(names[self._type_codes[self._places(ordinals)]])

    def _places(self, ordinals: np.ndarray) -> np.ndarray:
        found = np.searchsorted(self._ordinals, ordinals)
        known = self._ordinals[np.minimum(found, len(self._ordinals) - 1)] == ordinals if len(self._ordinals) else False
        return np.where(known, found, len(self._ordinals))

    def _index(self, others: Mapping[int, int]) -> None:
        """`others` are ordinals and numbers of steps whose own row is lost."""
        self.types = list(dict.fromkeys(step.type for step in self.list))
        codes = {name: code for code, name in enumerate(self.types)}
        numbers = {**others, **{step.ordinal: step.number for step in self.list}}
        types = {step.ordinal: codes[step.type] for step in self.list}
        self._ordinals = np.array(sorted(numbers), np.int64)
        self._numbers = np.array([*(numbers[one] for one in self._ordinals.tolist()), UNKNOWN], np.int64)
        unknown = len(self.types)
        self._type_codes = np.array([*(types.get(one, unknown) for one in self._ordinals.tolist()), unknown], np.int64)
        self._ordinals_of = {}
        for place, step in enumerate(self.list):
            self._ordinals_of.setdefault(step.number, []).append(place)

    def _no_such_step(self, number: int, type_: str | None) -> str:
        seen = self._why_absent(number, type_)
        known = sorted({step.number for step in self.list if type_ in (None, step.type)})
        if not known:
            return f"{seen}." if "superseded" in seen else f"{seen}: nothing was."
        near = _around(known, number)
        return f"{seen}. Nearest: {', '.join(map(str, near))}. `recording.steps` lists all {len(self.list)}."

    def _why_absent(self, number: int, type_: str | None) -> str:
        return f"Step {number} was not recorded" + (f" as {type_!r}" if type_ is not None else "")


class Steps(StepIndex):
    """All recorded steps of one rank that still have values; grows when there are more."""

    def __init__(self, reader: RankReader) -> None:
        super().__init__()
        self._reader = reader
        self._generation = -1
        self._batches = 0
        self._gone: frozenset[int] = frozenset()
        self._all: list[Step] = []

    def update(self) -> None:
        """Take up what the reader has found since the last time."""
        batches = self._reader.batches("steps")
        gone = self._reader.contents.hidden
        if (self._generation, self._batches, self._gone) == (self._reader.generation, len(batches), gone):
            return
        if self._generation != self._reader.generation:
            self._all, self._batches = [], 0
        self._all += _steps_of(batches[self._batches :])
        self._batches, self._generation, self._gone = len(batches), self._reader.generation, gone
        self.list = [step for step in self._all if step.ordinal not in gone]
        superseded = self._reader.contents.superseded - self._reader.contents.thinned
        self.superseded = [step for step in self._all if step.ordinal in superseded]
        # Also steps whose own row is damaged.
        self._index({one: number for one, number in self._reader.contents.step_of.items() if one not in gone})

    def _why_absent(self, number: int, type_: str | None) -> str:
        contents = self._reader.contents
        superseded = [step for step in self.superseded if step.number == number]
        if number not in self._ordinals_of and superseded:
            back_to = contents.end_of(contents.session_of.get(superseded[-1].ordinal, 0))
            return f"Step {number} was superseded when the trial was resumed from step {back_to}"
        if number in {contents.step_of.get(ordinal) for ordinal in contents.thinned}:
            return f"Step {number} was removed to stay within max_bytes"
        seen = super()._why_absent(number, type_)
        return seen + (", or was removed to stay within max_bytes" if contents.dropped else "")


def _around(known: Sequence[int], number: object) -> Sequence[int]:
    if not isinstance(number, (int, np.integer)):
        return known[:_MOST_SHOWN]
    place = bisect.bisect(known, number)
    return known[max(0, place - 2) : place + 3]


def _steps_of(batches: Sequence[pa.RecordBatch]) -> list[Step]:
    if not batches:
        return []
    renamed = {"number": "step", "raw_file": "raw", "config_json": "config", "extra_json": "extra"}
    names = [renamed.get(name, name) for name in Step.__slots__]
    # A newer version may have resumed the trial, and may have written more columns.
    table = pa.Table.from_batches([batch.select(names) for batch in batches]).combine_chunks()
    columns = [to_list(table[name]) for name in names]
    columns[Step.__slots__.index("skipped")] = [bool(value) for value in columns[Step.__slots__.index("skipped")]]
    for place in (Step.__slots__.index(name) for name in ("raw_samples", "categories")):
        columns[place] = [tuple(value) for value in columns[place]]
    return [Step(*fields) for fields in zip(*columns, strict=True)]
