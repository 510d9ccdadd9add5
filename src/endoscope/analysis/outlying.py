"""Which sample stands out among others, and where that begins in a graph.

statistics of all samples ─► features (sizes as logarithms, positions in units of size) ─► scores: how many usual
spreads a sample is away from the middle ─► upwards (or downwards, for gradients) along what is unusual
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

Node = TypeVar("Node", bound=Hashable)

FEATURES = ("abs_max", "norm", "std", "mean", "min", "max")
UNUSUAL = 8.0  # spreads; so far away is nothing by chance, in thousands of tensors
FEWEST = 5  # samples that are needed to say what is usual

_SIZES = 3  # the first features are sizes, and are compared as logarithms
_LEAST_SIZE, _LEAST_POSITION = 0.15, 0.15  # differences that are never worth a word, however equal all others are
_MOST = 1e6  # spreads; where all others are zero it would be any number
_MAD_TO_STD, _IQR_TO_STD = 1.4826, 0.7413


def scores(statistics: Mapping[str, np.ndarray], usual: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
    """float64[tensors, samples]: how far away every sample is. `usual` are others to compare with, all by default.

    Statistics are those of FEATURES, each [tensors, samples]; NaN where there is none.
    """
    known = np.stack([np.asarray((usual or statistics)[name], np.float64) for name in FEATURES])
    asked = np.stack([np.asarray(statistics[name], np.float64) for name in FEATURES])
    result = np.zeros(asked.shape[1:])
    enough = np.flatnonzero(np.all(np.sum(np.isfinite(known), axis=2) >= FEWEST, axis=0))
    if len(enough):
        known[~np.isfinite(known)] = np.nan
        result[enough] = _distances(asked[:, enough], known[:, enough])
    return result


def _distances(asked: np.ndarray, known: np.ndarray) -> np.ndarray:
    size = np.nanmedian(known[0], axis=1)[None, :, None]  # of each tensor
    known, asked = _features(known, size), _features(asked, size)
    middle = np.nanmedian(known, axis=2, keepdims=True)
    apart = _MAD_TO_STD * np.nanmedian(np.abs(known - middle), axis=2, keepdims=True)
    low, high = np.nanpercentile(known, [25, 75], axis=2, keepdims=True)
    spread = np.maximum(apart, _IQR_TO_STD * (high - low))
    spread *= 1 + 4 / np.sum(~np.isnan(known), axis=2, keepdims=True)  # few samples underestimate it
    least = np.where(np.arange(len(FEATURES)) < _SIZES, _LEAST_SIZE, _LEAST_POSITION)[:, None, None]
    found = np.abs(asked - middle) / np.maximum(spread, least)
    return np.asarray(np.minimum(np.nan_to_num(found, nan=0.0).max(axis=0), _MOST))


def _features(values: np.ndarray, size: np.ndarray) -> np.ndarray:
    sizes = np.log(np.maximum(values[:_SIZES], size * 1e-3 + 1e-30))
    return np.concatenate([sizes, values[_SIZES:] / np.maximum(size, 1e-30)])


@dataclass(frozen=True, slots=True)
class Beginning(Generic[Node]):
    """Where something unusual begins."""

    node: Node
    path: tuple[Node, ...]  # from there to where it was asked about, both included


def beginnings(
    starts: Iterable[Node], sources: Callable[[Node], Sequence[Node]], unusual: Callable[[Node], bool], gap: int
) -> list[Beginning[Node]]:
    """Every unusual node above a start (`sources`: where a node has it from) with nothing unusual above it.

    Up to `gap` usual nodes in between are passed over: a normalisation may hide for a moment what is still there.
    """
    paths: dict[Node, tuple[Node, ...]] = {}
    for start in starts:
        if unusual(start):
            paths.setdefault(start, (start,))
        else:
            for node, between in _nearest(start, sources, unusual, None):
                paths.setdefault(node, (node, *between, start))
    waiting, found = list(paths), []
    while waiting:
        node = waiting.pop()
        above = list(_nearest(node, sources, unusual, gap))
        if not above:
            found.append(Beginning(node, paths[node]))
        for other, between in above:
            if other not in paths:
                paths[other] = (other, *between, *paths[node])
                waiting.append(other)
    return found


def _nearest(
    start: Node, sources: Callable[[Node], Sequence[Node]], unusual: Callable[[Node], bool], gap: int | None
) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Unusual nodes above a node, with the usual ones in between; at most so many, if there is a limit."""
    waiting: deque[tuple[Node, tuple[Node, ...]]] = deque([(start, ())])
    seen = {start}
    while waiting:
        node, between = waiting.popleft()
        for source in sources(node):
            if source in seen:
                continue
            seen.add(source)
            if unusual(source):
                yield source, between
            elif gap is None or len(between) < gap:
                waiting.append((source, (source, *between)))
