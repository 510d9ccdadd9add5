"""When did series of numbers change their level, all of them at once?

    series ─► moves: mean of the next k numbers less that of the last k, for several k
           ─► a move that is far beyond the usual ones, of the whole series and of those around it (a steady drift is
              usual there), and that stays ─► the place with the largest such move

Spikes of one step are taken out first. What is usual is told by medians, so noise may be of any size and correlated.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

SPREADS = 8.0  # usual spreads that a move must be away: stationary noise stays below that
SCALES = (3, 6, 12, 24)
FEWEST = 16  # numbers that a series must have
_NEIGHBOURS = (2, 3, 4, 5, 6)  # moves that are compared, in multiples of k, to both sides
_FEWEST_NEIGHBOURS = 4
_SETTLING = 10  # places at the beginning where everything changes
_STAYS = 0.5  # of the move must be left afterwards
_SUDDEN = 0.6  # of the move must happen at the place itself
_MAD_TO_STD = 1.4826
_ROWS_AT_ONCE = 256


class ChangePoint(NamedTuple):
    """One change of one series."""

    row: int
    place: int  # of the first number behind the change
    move: float  # by how much the level changed, drift taken off
    score: float  # in usual spreads
    scale: int  # numbers to both sides that were compared


def change_points(series: np.ndarray, least: float, spreads: float = SPREADS) -> list[ChangePoint]:
    """Changes of all rows of float[series, places], in order of row and place; no move below `least` is one."""
    found: list[ChangePoint] = []
    if series.shape[1] < FEWEST:
        return found
    for start in range(0, len(series), _ROWS_AT_ONCE):
        rows = _without_spikes(np.asarray(series[start : start + _ROWS_AT_ONCE], np.float64))
        candidates = [point for scale in SCALES for point in _at_scale(rows, scale, least, spreads)]
        by_row: dict[int, list[ChangePoint]] = {}
        for point in candidates:
            by_row.setdefault(point.row, []).append(point)
        for row in sorted(by_row):
            found += [point._replace(row=row + start) for point in _strongest(by_row[row], rows[row])]
    return found


def _without_spikes(rows: np.ndarray) -> np.ndarray:
    """The median of three neighbours, and of their medians once more: a spike of two steps goes, a level stays."""
    for _ in range(2):
        shifted = np.stack([np.roll(rows, 1, axis=1), rows, np.roll(rows, -1, axis=1)])
        inner = np.sort(shifted, axis=0)[1]
        inner[:, 0], inner[:, -1] = rows[:, 0], rows[:, -1]
        rows = inner
    return rows


def _moves(rows: np.ndarray, scale: int, reach: int = 1) -> np.ndarray:
    """At every place the mean of the `reach` * scale numbers from there on less that of the `scale` before it."""
    count = rows.shape[1]
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    places = np.arange(scale, count - scale * reach + 1)
    after = (sums[:, places + scale * reach] - sums[:, places]) / (scale * reach)
    before = (sums[:, places] - sums[:, places - scale]) / scale
    found = np.full(rows.shape, np.nan)
    found[:, places] = after - before
    return found


def _at_scale(rows: np.ndarray, scale: int, least: float, spreads: float) -> list[ChangePoint]:
    if rows.shape[1] < 5 * scale:
        return []
    moves = _moves(rows, scale)
    inside = moves[:, scale : rows.shape[1] - scale + 1]
    middle = np.median(inside, axis=1, keepdims=True)
    usual = _MAD_TO_STD * np.median(np.abs(inside - middle), axis=1)
    with np.errstate(invalid="ignore"):
        far = (
            (np.arange(rows.shape[1]) >= _SETTLING)
            & (np.abs(moves) >= least)
            & (np.abs(moves) > spreads * usual[:, None])
        )
    lines, places = np.nonzero(far)
    if not len(lines):
        return []
    drift, around = _around(moves, lines, places, scale)
    move = moves[lines, places] - drift
    spread = np.maximum(np.maximum(usual[lines], around), least / spreads)
    score = np.abs(move) / spread
    jumps = np.sign(move) * _gap(rows, lines, places, scale) >= _SUDDEN * np.abs(move)
    stays = _stays(rows, lines, places, scale, move, drift)
    keep = np.flatnonzero((score >= spreads) & (np.abs(move) >= least) & stays & jumps)
    return [ChangePoint(int(lines[i]), int(places[i]), float(move[i]), float(score[i]), scale) for i in keep]


def _around(moves: np.ndarray, lines: np.ndarray, places: np.ndarray, scale: int) -> tuple[np.ndarray, np.ndarray]:
    """Middle and spread of the moves to both sides of places; NaN, which fails every test, if there are too few."""
    offsets = np.array([side * scale * n for n in _NEIGHBOURS for side in (-1, 1)])
    at = places[:, None] + offsets
    valid = (at >= 0) & (at < moves.shape[1])
    others = np.where(valid, moves[lines[:, None], np.clip(at, 0, moves.shape[1] - 1)], np.nan)
    enough = np.sum(~np.isnan(others), axis=1) >= _FEWEST_NEIGHBOURS
    others[~enough, 0] = 0.0  # nanmedian would complain about rows without a number
    middle = np.nanmedian(others, axis=1)
    spread = _MAD_TO_STD * np.nanmedian(np.abs(others - middle[:, None]), axis=1)
    return np.where(enough, middle, np.nan), np.where(enough, spread, np.nan)


def _gap(rows: np.ndarray, lines: np.ndarray, places: np.ndarray, scale: int) -> np.ndarray:
    """By how much straight lines through what is before and what is behind a place miss each other there.

    A bend, as at the beginning of every training, moves the mean as well, but the lines meet.
    """
    half = max(scale // 2, 1)
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    first, second, third, fourth = (
        (sums[lines, places + (n + 1) * half] - sums[lines, places + n * half]) / half for n in (-2, -1, 0, 1)
    )
    return np.asarray((1.5 * third - 0.5 * fourth) - (1.5 * second - 0.5 * first))


def _stays(
    rows: np.ndarray, lines: np.ndarray, places: np.ndarray, scale: int, move: np.ndarray, drift: np.ndarray
) -> np.ndarray:
    """Whether the level is still another one two to three scales later, and was what it was as long before."""
    sums = np.concatenate([np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)], axis=1)
    count = rows.shape[1]

    def level(first: np.ndarray, last: np.ndarray) -> np.ndarray:
        first, last = np.clip(first, 0, count - 1), np.clip(last, 1, count)
        return np.asarray((sums[lines, last] - sums[lines, first]) / np.maximum(last - first, 1))

    before, earlier = level(places - scale, places), level(places - 3 * scale, places - scale)
    later = level(places + scale, np.minimum(places + 3 * scale, count))
    sign = np.sign(move)
    left = sign * (later - before - 2 * drift)
    risen = sign * (level(places, places + scale) - earlier - 2 * drift)
    room = places + 2 * scale <= count  # at the very end nobody can know yet
    return np.asarray((left >= _STAYS * np.abs(move)) & (risen >= _STAYS * np.abs(move)) & room)


def _strongest(points: list[ChangePoint], row: np.ndarray) -> list[ChangePoint]:
    """Of points that are about the same change, the one with the highest score, put where the numbers really jump."""
    found: list[ChangePoint] = []
    for point in sorted(points, key=lambda one: -one.score):
        if all(abs(point.place - other.place) > 2 * max(point.scale, other.scale) for other in found):
            found.append(point)
    return sorted((point._replace(place=_jump(point, row)) for point in found), key=lambda one: one.place)


def _jump(point: ChangePoint, row: np.ndarray) -> int:
    """The first place at which more than half of the move is done."""
    low, high = max(point.place - point.scale, 0), min(point.place + point.scale, len(row))
    before = float(np.mean(row[low : point.place]))
    done = np.sign(point.move) * (row[low:high] - before) >= abs(point.move) / 2
    undone = np.flatnonzero(~done)
    return low + (int(undone[-1]) + 1 if len(undone) and undone[-1] + 1 < len(done) else point.place - low)
