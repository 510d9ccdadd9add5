"""Finite outliers in a recording: the earliest tensors in which a sample, or a whole step, is unlike the others.

sample   compared with all samples of the step and of the steps around it
step     whole tensors, compared with those of the steps around it
"""

from __future__ import annotations

import numpy as np

from endoscope.analysis.outlying import FEATURES, FEWEST, UNUSUAL, beginnings, scores
from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings.facts import Facts
from endoscope.findings.rows import Rows
from endoscope.findings.structure import Place
from endoscope.schema.origin import OUTLIER, Operand, Origin
from endoscope.schema.recording import GRADIENT
from endoscope.store.streams import to_numpy

_GAP = 1  # usual nodes between two unusual ones
_STEPS_OF_SAMPLES = 8  # steps whose samples are compared
_SOURCES = ("input", "target", "parameter", "buffer")  # nothing of the model made them
_STEPS = 64  # steps that are compared as a whole


def outliers_of(
    facts: Facts, node: str | None, place: int | None, sample: int | None, of: str, type_: str | None
) -> list[Origin]:
    """Where it begins; without a step, at the one at which the node (or else anything) is most unusual."""
    rows = facts.values if of == "value" else facts.gradients[of.removeprefix(GRADIENT)]
    starts = [tensor.place for tensor in rows.tensors if tensor.node == node]
    if node is not None and not starts:
        raise LookupFailed(f"Nothing was recorded of {node!r} ({of}).")
    if place is None:
        place = _most_unusual(facts, rows, starts, type_)
    around = _around(facts, place, _STEPS if sample is None else _STEPS_OF_SAMPLES)
    found = _of_steps(rows, place, around) if sample is None else _of_samples(facts, rows, place, around, sample)
    unusual = {rows.tensors[row].place: score for row, score in enumerate(found.tolist()) if score > UNUSUAL}
    return _origins(facts, rows, unusual, starts, (place, sample, of))


def _origins(
    facts: Facts, rows: Rows, unusual: dict[Place, float], starts: list[Place], where: tuple[int, int | None, str]
) -> list[Origin]:
    structure, (place, sample, of) = facts.structure, where
    backward = of != "value"
    above, below = (structure.children, structure.parents) if backward else (structure.parents, structure.children)
    if not starts:
        starts = [one for one in unusual if not any(other in unusual for other in below.get(one, ()))]
    found = beginnings(starts, lambda one: above.get(one, ()), unusual.__contains__, _GAP)
    found.sort(key=lambda one: structure.depth(one.node) * (-1 if backward else 1))
    origins = []
    for one in found:
        key = rows.tensors[rows.row_of[one.node]].key
        origins.append(
            Origin(
                sort=OUTLIER, of=of, node=key.node, operation=structure.type.get(one.node, key.kind), module=key.module,
                source=key.source, step=int(facts.numbers[place]), samples=() if sample is None else (sample,),
                value=unusual[one.node], inputs=_read(facts, one.node), exact=key.kind in _SOURCES,
                path=tuple(dict.fromkeys(name for name, _, _ in one.path)),
            )
        )  # fmt: skip
    return origins


def _read(facts: Facts, place: Place) -> tuple[Operand, ...]:
    """The recorded nodes that it was made from: what made it unusual stands between them and it."""
    names = dict.fromkeys(name for name, _, _ in facts.structure.parents.get(place, ()))
    made = [name for name in names if name not in {tensor.node for tensor in facts.parameters.tensors}]
    return tuple(Operand(name=name, argument="") for name in made)


def _most_unusual(facts: Facts, rows: Rows, starts: list[Place], type_: str | None) -> int:
    chosen = [rows.row_of[start] for start in starts] or list(range(len(rows)))
    steps = [place for place in range(len(facts.steps)) if type_ in (None, facts.types[place])]
    _check_enough(len(steps), "steps")
    numbers = {name: rows[name][chosen][:, steps] for name in FEATURES}
    return steps[int(np.argmax(scores(numbers).max(axis=0)))]


def _around(facts: Facts, place: int, most: int) -> list[int]:
    """Places of the steps of the same type nearest to one, itself included."""
    same = [other for other in range(len(facts.steps)) if facts.types[other] == facts.types[place]]
    return sorted(sorted(same, key=lambda other: abs(other - place))[:most])


def _of_steps(rows: Rows, place: int, around: list[int]) -> np.ndarray:
    _check_enough(len(around), "steps")
    numbers = {name: rows[name] for name in FEATURES}
    asked = {name: matrix[:, place : place + 1] for name, matrix in numbers.items()}
    found = scores(asked, {name: matrix[:, around] for name, matrix in numbers.items()})[:, 0]
    return np.where(np.isnan(rows["count"][:, place]), 0.0, found)


def _of_samples(facts: Facts, rows: Rows, place: int, around: list[int], sample: int) -> np.ndarray:
    tables = {other: _samples_at(facts, rows, other) for other in around}
    width = max(table["mean"].shape[1] for table in tables.values())
    own = tables[place]
    count = _batch(rows, own["norm"])
    if not 0 <= sample < count:
        raise BadArgument(f"sample={sample}: step {facts.numbers[place]} has {count} samples, from 0 on.")
    _check_enough(count * len(around), "samples")
    asked = {name: own[name][:, sample : sample + 1] for name in FEATURES}
    usual = {name: np.concatenate([_padded(t[name], width) for t in tables.values()], axis=1) for name in FEATURES}
    known = scores(asked, usual)[:, 0]
    # Heads that are merged with samples, masks: their numbers are about something else than this sample.
    comparable = np.array([tensor.is_float for tensor in rows.tensors]) & (_counts(own["norm"]) == count)
    return np.where(comparable & ~np.isnan(asked["norm"][:, 0]), known, 0.0)


def _counts(norm: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(~np.isnan(norm), axis=1))


def _batch(rows: Rows, norm: np.ndarray) -> int:
    """How many samples the step has: those of what went in, or else the most that a tensor has."""
    counts = _counts(norm)
    inputs = [counts[tensor.row] for tensor in rows.tensors if tensor.key.kind == "input"]
    return int(max(inputs, default=0) or counts.max(initial=0))


def _samples_at(facts: Facts, rows: Rows, place: int) -> dict[str, np.ndarray]:
    """name -> float64[tensors, samples] of one step; NaN where a tensor has no such sample."""
    batch = facts.recording.tables.batch("samples", facts.steps[place])
    if batch is None or not batch.num_rows:
        return {name: np.full((len(rows), 0), np.nan) for name in FEATURES}
    which, offsets = to_numpy(batch.column("sample").values), to_numpy(batch.column("sample").offsets)
    width = int(which.max(initial=-1)) + 1
    found = {name: np.full((len(rows), width), np.nan) for name in FEATURES}
    for number, key in enumerate(to_numpy(batch.column("key")).tolist()):
        row = rows.row_of_key.get(key)
        if row is None:
            continue
        part = slice(offsets[number], offsets[number + 1])
        for name, target in found.items():
            target[row, which[part]] = to_numpy(batch.column(name).values)[part]
    return found


def _padded(table: np.ndarray, width: int) -> np.ndarray:
    return np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=np.nan)


def _check_enough(count: int, what: str) -> None:
    if count < FEWEST:
        raise BadArgument(
            f"There are {count} {what} to compare with. What is unusual shows only beside others: at least {FEWEST} "
            f"recorded {what} are needed."
        )
