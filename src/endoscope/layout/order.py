"""The order of vertices in each row: that of execution, with as few crossings as sorting by neighbours can reach.

It depends neither on sizes nor on what is open in other boxes, so folding something leaves the order of the rest alone.
"""

from __future__ import annotations

from endoscope.layout.net import Net

SWEEPS = 12
_STALE = 3  # sweeps without a gain, after which there is none to come
_FEW = 400  # vertices; above this neighbours are not swapped one by one
_EXCHANGES = 4


def sort_rows(net: Net) -> list[int]:
    """Sorts the rows of the net, and returns the place of each vertex in its row."""
    place = [0] * len(net.rank)
    for row in net.rows:
        _number(row, place)
    if all(len(row) < 2 for row in net.rows):
        return place
    _sweep(net, place, downwards=True, only_bends=True)
    best, fewest, stale = [row[:] for row in net.rows], crossings(net, place), 0
    for sweep in range(SWEEPS):
        if not fewest or stale == _STALE:
            break
        _sweep(net, place, downwards=sweep % 2 == 0, only_bends=False)
        if len(place) < _FEW:
            _exchange(net, place)
        count = crossings(net, place)
        if count < fewest:
            best, fewest, stale = [row[:] for row in net.rows], count, 0
        else:
            stale += 1
    net.rows = best
    for row in best:
        _number(row, place)
    return place


def _number(row: list[int], place: list[int]) -> None:
    for number, vertex in enumerate(row):
        place[vertex] = number


def _sweep(net: Net, place: list[int], *, downwards: bool, only_bends: bool) -> None:
    """Sort every row by the mean place of the neighbours in the row before."""
    first_bend = net.first_bend
    for row in net.rows if downwards else reversed(net.rows):
        if len(row) < 2:
            continue
        wish: dict[int, float] = {}
        for number, vertex in enumerate(row):
            if downwards:
                near = [place[segment.above] for segment in net.up[vertex]]
            else:
                near = [place[segment.below] for segment in net.down[vertex]]
            if not near or (only_bends and vertex < first_bend):
                wish[vertex] = number
            else:
                wish[vertex] = sum(near) / len(near) + (0.01 if vertex >= first_bend else 0.0)
        row.sort(key=wish.__getitem__)
        _number(row, place)


def _exchange(net: Net, place: list[int]) -> None:
    """Swap neighbours in a row while that removes crossings."""
    for _ in range(_EXCHANGES):
        moved = False
        for row in net.rows:
            for number in range(1, len(row)):
                left, right = row[number - 1], row[number]
                if _gain(net, place, left, right) > 0:
                    row[number - 1], row[number] = right, left
                    place[right], place[left] = number - 1, number
                    moved = True
        if not moved:
            return


def _gain(net: Net, place: list[int], left: int, right: int) -> int:
    """Crossings that go away if two neighbours change places."""
    gain = 0
    for segment in net.up[left]:
        here = place[segment.above]
        for other in net.up[right]:
            there = place[other.above]
            gain += (here > there) - (here < there)
    for segment in net.down[left]:
        here = place[segment.below]
        for other in net.down[right]:
            there = place[other.below]
            gain += (here > there) - (here < there)
    return gain


def crossings(net: Net, place: list[int]) -> int:
    """Pairs of segments that cross: counted from the left with a Fenwick tree over the row below."""
    total = 0
    for row, below in zip(net.rows, net.rows[1:], strict=False):
        size = len(below)
        if len(row) < 2 or size < 2:
            continue
        tree, seen = [0] * (size + 1), 0
        for vertex in row:
            ends = [place[segment.below] + 1 for segment in net.down[vertex]]
            for end in ends:
                total += seen
                while end:
                    total -= tree[end]
                    end -= end & -end
            for end in ends:
                seen += 1
                while end <= size:
                    tree[end] += 1
                    end += end & -end
    return total
