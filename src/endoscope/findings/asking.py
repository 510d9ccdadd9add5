"""Functions of somebody's own are asked tensor by tensor and step by step; numbers are handed over when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from endoscope.analysis.user_rules.anomalies import Anomaly, Look
from endoscope.errors import BadArgument
from endoscope.findings import per_sample
from endoscope.findings.facts import Facts
from endoscope.findings.rows import Rows
from endoscope.schema.stats import SAMPLE, WHOLE


class Lazy(Mapping[str, Any]):
    """Statistics by name, looked up when they are asked for."""

    def __init__(self, names: Sequence[str], find: Callable[[str], Any]) -> None:
        self._names = names
        self._find = find

    def __getitem__(self, name: str) -> Any:
        if name not in self._names:
            raise KeyError(f"there is no statistic {name!r}; there are {', '.join(self._names)}")
        return self._find(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def ask(anomaly: Anomaly, facts: Facts, rows: Rows, part: np.ndarray, there: np.ndarray) -> np.ndarray:
    """bool[tensors, steps, samples]: what the function says; one column if it never speaks of samples."""
    assert anomaly.function is not None
    read: dict[str, np.ndarray] = {}

    def whole(row: int, step: int, name: str) -> float:
        return float(rows[name][row, step])

    def statistics(name: str) -> np.ndarray:
        if name not in read:
            read[name] = per_sample.read(facts, rows, part, (name,))[name]
        return read[name]

    def of_samples(place: int, step: int, name: str) -> np.ndarray:
        count = np.count_nonzero(~np.isnan(statistics(per_sample.ALWAYS_THERE)[place, step]))
        return statistics(name)[place, step, :count]

    recorded = [*dict.fromkeys([*WHOLE, *(one.name for one in facts.recording.tables.statistics)])]
    largest = max(int(per_sample.batch_sizes(facts, rows)[part].max(initial=0)), 1)
    result = np.zeros((len(part), len(facts.steps), largest), dtype=bool)
    speaks_of_samples = False
    for place, row in enumerate(part.tolist()):
        key = rows.tensors[row].key
        names = SAMPLE if key.batch_dim >= 0 else ()
        for step in np.flatnonzero(there[place]).tolist():
            look = Look(
                key.node, key.role, key.pass_, key.of, key.kind, int(facts.numbers[step]), facts.types[step],
                Lazy(recorded, partial(whole, row, step)), Lazy(names, partial(of_samples, place, step)),
            )  # fmt: skip
            answer = np.asarray(anomaly.function(look))
            speaks_of_samples = speaks_of_samples or answer.ndim > 0
            result[place, step] = spread(answer, largest, anomaly)
    return result if speaks_of_samples else result[:, :, :1]


def spread(answer: np.ndarray, samples: int, anomaly: Anomaly) -> np.ndarray:
    """What a function returned, for every sample."""
    if answer.ndim == 0:
        return np.full(samples, bool(answer))
    if answer.ndim > 1 or len(answer) > samples:
        raise BadArgument(
            f"The function of {anomaly.name!r} returned an array of shape {answer.shape}, and the batch has {samples} "
            "samples. Return True or False, or one of them for each sample."
        )
    return np.pad(answer.astype(bool), (0, samples - len(answer)))
