"""Neighbouring steps, compared so that drift does not look like a difference.

Everything drifts while a network trains. If steps of type b always come one after those of type a, the mean of all b
differs from the mean of all a although nothing depends on the type. So each short window of steps is fitted by

    value = a parabola in the number of the step + difference · (is it a?)

and only the difference is kept: a weight for each step of the window, the same for all tensors. What drifts like a
parabola within a window contributes exactly nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

_LARGEST_NOISE = 1.5  # variance of a window's difference, in variances of one value; 0.7 if types strictly alternate
_LONGEST = 24  # steps in a window; if that is not enough, types do not alternate here
_LEAST_OF_EACH = 3


@dataclass(frozen=True, slots=True)
class Windows:
    """Each row of `weights` turns the values of all steps into the difference a - b within one window."""

    weights: np.ndarray  # float64[windows, steps]; zero outside of the window
    first: np.ndarray  # number of the first step of each window
    residual: np.ndarray  # float64[rows, steps]: what is left of the values of a window, in rows of length one
    owner: np.ndarray  # which window each of these rows belongs to

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def noise(self) -> np.ndarray:
        """Variance of each difference, in variances of one value."""
        return np.asarray((self.weights**2).sum(axis=1))

    @property
    def freedom(self) -> np.ndarray:
        """How many rows are left of each window."""
        return np.bincount(self.owner, minlength=len(self))

    @property
    def used(self) -> np.ndarray:
        """bool[steps]: those that any window looks at."""
        return np.asarray((self.weights != 0).any(axis=0))

    def pick(self, most: int) -> Windows:
        """At most so many of them, spread evenly."""
        places = np.unique(np.linspace(0, len(self) - 1, min(most, len(self))).round().astype(np.int64))
        new = np.full(len(self), -1)
        new[places] = np.arange(len(places))
        rows = new[self.owner] >= 0
        return Windows(self.weights[places], self.first[places], self.residual[rows], new[self.owner[rows]])

    def joined(self, most: int) -> Windows:
        """Neighbours put together, until there are at most so many."""
        if len(self) <= most:
            return self
        group = np.arange(len(self)) * most // len(self)
        weights = np.array([self.weights[group == number].mean(axis=0) for number in range(most)])
        first = np.array([self.first[group == number][0] for number in range(most)])
        return Windows(weights, first, self.residual, group[self.owner])

    def over(self, steps: int, places: np.ndarray) -> Windows:
        """The same over more steps, of which these are some."""
        wide = [np.zeros((len(part), steps)) for part in (self.weights, self.residual)]
        wide[0][:, places], wide[1][:, places] = self.weights, self.residual
        return Windows(wide[0], self.first, wide[1], self.owner)

    def only(self, places: np.ndarray) -> Windows:
        """The same over some of the steps."""
        return Windows(self.weights[:, places], self.first, self.residual[:, places], self.owner)


def make_windows(numbers: np.ndarray, is_a: np.ndarray, groups: np.ndarray) -> Windows:
    """Windows that do not overlap; `groups` are never compared with each other (types of step of two trials)."""
    found: list[_Window] = []
    for group in np.unique(groups).tolist():
        places = np.flatnonzero(groups == group)
        places = places[np.argsort(numbers[places], kind="stable")]
        found += _cut(neighbours(places, numbers, is_a), numbers, is_a)
    found.sort(key=lambda window: int(numbers[window.places[0]]))
    weights = np.zeros((len(found), len(numbers)))
    residual = np.zeros((sum(len(window.residual) for window in found), len(numbers)))
    owner = np.repeat(np.arange(len(found)), [len(window.residual) for window in found])
    row = 0
    for place, window in enumerate(found):
        weights[place, window.places] = window.weights
        residual[row : row + len(window.residual), window.places] = window.residual
        row += len(window.residual)
    first = np.array([numbers[window.places[0]] for window in found], np.int64)
    return Windows(weights, first, residual, owner)


class _Window(NamedTuple):
    """One window on its own steps."""

    places: np.ndarray
    weights: np.ndarray
    residual: np.ndarray


def neighbours(places: np.ndarray, numbers: np.ndarray, is_a: np.ndarray) -> np.ndarray:
    """Only steps that have one of the other sort beside them; a long run of one sort says nothing about the other."""
    if not len(places):
        return places
    sort = is_a[places]
    changes = np.flatnonzero(sort[1:] != sort[:-1])
    keep = np.zeros(len(places), dtype=bool)
    keep[changes] = keep[changes + 1] = True
    return np.asarray(places[keep])


def _cut(places: np.ndarray, numbers: np.ndarray, is_a: np.ndarray) -> list[_Window]:
    found = []
    start = 0
    end = 2 * _LEAST_OF_EACH
    while end <= len(places):
        part = places[start:end]
        window = _window(part, numbers[part], is_a[part])
        if window is not None:
            found.append(window)
            start = end
            end = start + 2 * _LEAST_OF_EACH
        elif end - start >= _LONGEST:
            start += 1
        else:
            end += 1
    return found


def _window(places: np.ndarray, numbers: np.ndarray, is_a: np.ndarray) -> _Window | None:
    """None if drift and difference cannot be told apart well enough."""
    many = int(is_a.sum())
    if min(many, len(is_a) - many) < _LEAST_OF_EACH:
        return None
    time = numbers - numbers.mean()
    time = time / (np.abs(time).max() or 1.0)
    drift = np.stack([np.ones_like(time), time, time**2], axis=1)
    mark = is_a.astype(np.float64)
    without = mark - drift @ np.linalg.lstsq(drift, mark, rcond=None)[0]  # what of the mark no drift can imitate
    square = float(without @ without)
    if square * _LARGEST_NOISE < 1.0:
        return None
    directions, sizes, _ = np.linalg.svd(np.column_stack([drift, mark]))
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    return _Window(places, without / square, directions[:, rank:].T)
