"""The two sides of a comparison of steps: two types of step of one trial, or two trials.

Both become columns: the steps of side a and those of side b, in one matrix for each statistic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings.differing.windows import Windows, make_windows
from endoscope.findings.facts import Facts
from endoscope.findings.rows import Rows
from endoscope.query.steps import Step
from endoscope.schema.recording import GRADIENT, Key

LEAST_WINDOWS = 4
MOST_BLOCKS = 20  # of two trials: neighbouring steps of one training have more in common than chance
Place = tuple[str, str, int, str]  # node, role, pass, of


class Column(NamedTuple):
    """One step of one side."""

    facts: Facts
    place: int  # of the step in its trial
    is_a: bool

    @property
    def step(self) -> Step:
        return self.facts.steps[self.place]


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared with what."""

    names: tuple[str, str]
    columns: Sequence[Column]
    has_parameters: bool  # types of step share them, trials do not
    most_windows: int | None = None

    @property
    def is_a(self) -> np.ndarray:
        return np.array([column.is_a for column in self.columns])

    @property
    def numbers(self) -> np.ndarray:
        return np.array([column.step.number for column in self.columns], np.int64)

    @property
    def facts(self) -> tuple[Facts, Facts]:
        """Of side a and of side b."""
        return (
            next(column.facts for column in self.columns if column.is_a),
            next(column.facts for column in self.columns if not column.is_a),
        )

    def windows(self, there: np.ndarray | None = None) -> Windows:
        """Windows over the steps; `there` leaves out those that lack a tensor."""
        places = np.arange(len(self.columns)) if there is None else np.flatnonzero(there)
        _, groups = np.unique([self._group(self.columns[place]) for place in places.tolist()], return_inverse=True)
        found = make_windows(self.numbers[places], self.is_a[places], groups).over(len(self.columns), places)
        return found.joined(self.most_windows) if self.most_windows else found

    def _group(self, column: Column) -> str:
        return column.step.type if self.has_parameters else ""

    def matrices(self, statistic: str) -> Iterator[tuple[list[Key], np.ndarray]]:
        """(tensors, float64[tensors, columns]) of each sort of tensor that both sides have."""
        first, second = self.facts
        for of in self._sorts(first):
            one, other = _rows(first, of), _rows(second, of)
            if one is None or other is None:
                continue
            places = [tensor.place for tensor in one.tensors if tensor.place in other.row_of]
            if not places:
                continue
            tables = {id(first): _table(one, statistic), id(second): _table(other, statistic)}
            rows = {
                id(facts): np.array([table.row_of[place] for place in places])
                for facts, table in ((first, one), (second, other))
            }
            parts = np.empty((len(places), len(self.columns)))
            for facts in {id(first): first, id(second): second}.values():
                mine = [n for n, column in enumerate(self.columns) if column.facts is facts]
                steps = np.array([self.columns[n].place for n in mine])
                parts[:, mine] = tables[id(facts)][rows[id(facts)]][:, steps]
            yield [one.tensors[one.row_of[place]].key for place in places], parts

    def _sorts(self, facts: Facts) -> list[str]:
        parameters = ["parameter"] if self.has_parameters else []
        return ["value", *parameters, "update", *(GRADIENT + loss for loss in facts.gradients)]


def of_types(facts: Facts, a: str, b: str) -> Sides:
    """Steps of two types, in one trial."""
    known = list(dict.fromkeys(facts.types.tolist()))
    for name in (a, b):
        if name not in known:
            raise LookupFailed(
                f"No step of type {name!r} was recorded in {facts.trial!r}. Types: {', '.join(map(repr, known))}."
            )
    columns = [Column(facts, place, step.type == a) for place, step in enumerate(facts.steps) if step.type in (a, b)]
    return _checked(Sides((a, b), columns, has_parameters=False), "types")


def of_trials(first: Facts, second: Facts) -> Sides:
    """Two trials, at steps of the same type."""
    types = set(first.types.tolist()) & set(second.types.tolist())
    columns = [
        Column(facts, place, facts is first)
        for facts in (first, second)
        for place, step in enumerate(facts.steps)
        if step.type in types
    ]
    if not types:
        raise BadArgument(
            f"The trials {first.trial!r} and {second.trial!r} have no type of step in common: "
            f"{sorted(set(first.types.tolist()))} and {sorted(set(second.types.tolist()))}. Steps of different types "
            "are compared within one trial, by type=(…, …)."
        )
    return _checked(Sides((first.trial, second.trial), columns, True, MOST_BLOCKS), "trials")


def _checked(sides: Sides, what: str) -> Sides:
    found = len(sides.windows())
    if found >= LEAST_WINDOWS:
        return sides
    many = int(sides.is_a.sum())
    counts = f"{many} recorded steps of {sides.names[0]!r} and {len(sides.columns) - many} of {sides.names[1]!r}"
    raise BadArgument(
        f"{counts} take turns only often enough for {found} comparisons of neighbours; {LEAST_WINDOWS} are the least "
        f"that can tell a difference between {what} from drift. Record more steps of both, in turns."
    )


def _rows(facts: Facts, of: str) -> Rows | None:
    if of.startswith(GRADIENT):
        return facts.gradients.get(of.removeprefix(GRADIENT))
    return {"value": facts.values, "parameter": facts.parameters, "update": facts.updates}[of]


def _table(rows: Rows, statistic: str) -> np.ndarray:
    found = rows[statistic]
    if statistic in ("zeros", "nans", "infs", "neg_infs"):
        return np.asarray(found / np.maximum(rows["count"], 1))
    return found
