"""Back-to-back repeats in a sequence of symbols, folded from the inside outwards.

    s c c t s c c t s c c t u ──► "c c" is c twice ──► s c t s c t s c t u ──► "s c t" three times ──► s c t u

A run is a stretch that repeats itself with some period; its last pass may end early. Of runs that overlap the one
with the shortest period is folded first, the others are looked for again in what is left. Work is bounded, so
that no sequence, however it is built, takes more than time proportional to its length: what a search of that
length has not found stays unfolded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

Links = Callable[[Sequence[int]], list[bool]]

_DEEPEST = 12  # loops inside each other
_STEPS_PER_SYMBOL = 24  # comparisons that one search may take
_LONGEST_STRIDE = 4096


@dataclass(slots=True)
class Fold:
    """One loop: what runs in a pass, each part once."""

    body: list[int]
    passes: int  # of the part that runs most often
    twins: dict[int, int]  # item of another pass -> its like in the body


def fold(items: Sequence[int], symbols: Sequence[int], end: int, links: Links) -> list[Fold]:
    """All loops among ascending items, inner ones first.

    `links(starts)` says of each pass but the first whether it depends on the one before; `starts` are the first
    items of the passes and the end of the last one. A run is cut where it is not linked, and no loop if that is
    nearly everywhere. `end` comes after all items.
    """
    found: list[Fold] = []
    items, symbols = list(items), list(symbols)
    for _ in range(_DEEPEST):
        folded = _fold_once(items, symbols, end, links)
        if not folded:
            break
        found += folded
        gone = {item for one in folded for item in one.twins}
        kept = [n for n, item in enumerate(items) if item not in gone]
        items, symbols = [items[n] for n in kept], [symbols[n] for n in kept]
    return found


def _fold_once(items: list[int], symbols: list[int], end: int, links: Links) -> list[Fold]:
    folded: list[Fold] = []
    taken = bytearray(len(items))
    for start, period, stop in sorted(find_runs(symbols), key=lambda run: run[1]):
        if 1 in taken[start:stop]:
            continue
        cuts = [*range(start, stop, period), stop]
        linked = links([items[cut] if cut < len(items) else end for cut in cuts])
        if 2 * sum(linked) < len(linked):
            continue  # side by side: that two of them depend on each other does not make a loop
        parts = [(cuts[first], cuts[last + 1]) for first, last in _linked_parts(linked)]
        parts = [(low, high) for low, high in parts if high - low >= 2 * period]
        if parts:
            taken[start:stop] = bytes([1]) * (stop - start)
            folded += [_folded(items, symbols, taken, (low, period, high)) for low, high in parts]
    return folded


def _linked_parts(linked: list[bool]) -> list[tuple[int, int]]:
    """First and last pass of every stretch in which each pass depends on the one before."""
    parts, first = [], 0
    for number, joined in enumerate(linked, 1):
        if not joined:
            parts.append((first, number - 1))
            first = number
    parts.append((first, len(linked)))
    return parts


def _folded(items: list[int], symbols: list[int], taken: bytearray, run: tuple[int, int, int]) -> Fold:
    low, period, high = run
    body, like = items[low : low + period], symbols[low : low + period]
    twins = {items[n]: body[(n - low) % period] for n in range(low + period, high)}
    passes = -(-(high - low) // period)
    goes_on = (low and symbols[low - 1] in like) or (high < len(items) and symbols[high] in like)
    if goes_on and len(set(like)) == period:  # else a part that occurs twice in the body cannot be told
        before, behind = range(low - 1, max(low - period, -1), -1), range(high, min(high + period, len(items)))
        for beside in (before, behind):
            twins |= _ragged_end(beside, items, symbols, taken, dict(zip(like, body, strict=True)))
        passes = 1 + max(Counter(twins.values()).values())
    return Fold(body, passes, twins)


def _ragged_end(
    beside: range, items: list[int], symbols: list[int], taken: bytearray, missing: dict[int, int]
) -> dict[int, int]:
    """The first or the last pass may have skipped something: what is left of it stands right beside the run."""
    twins: dict[int, int] = {}
    for n in beside:
        if taken[n] or symbols[n] not in missing:
            break
        twins[items[n]] = missing.pop(symbols[n])
        taken[n] = 1
    return twins


def find_runs(symbols: Sequence[Hashable]) -> list[tuple[int, int, int]]:
    """Start, period and end of stretches that repeat themselves at least once in full.

    Periods are guessed from the distance to the last and the last but one occurrence of a symbol: in nearly every
    loop some part runs no more often than twice in a pass.
    """
    symbols = list(symbols)
    runs: list[tuple[int, int, int]] = []
    last: dict[Hashable, int] = {}
    before: dict[Hashable, int] = {}  # the occurrence before the last
    examined: dict[int, int] = {}  # period -> end of the last stretch looked at
    position, budget = 0, _STEPS_PER_SYMBOL * len(symbols)
    while position < len(symbols) and budget > 0:
        symbol = symbols[position]
        for earlier in (last.get(symbol), before.get(symbol)):
            if earlier is None or examined.get(position - earlier, 0) > position:
                break
            period = position - earlier
            start, stop = _stretch(symbols, position, period)
            examined[period] = stop
            budget -= stop - start + 1
            if stop - start >= period:
                runs.append((start - period, period, stop))
                if len(set(symbols[stop - period : stop])) == period:
                    position = stop - 1  # nothing repeats inside such a run
                    last.update((symbols[n], n) for n in range(stop - period, stop))
                    before.update((symbols[n], n - period) for n in range(stop - period, stop))
                break
        symbol = symbols[position]
        if last.get(symbol, position) != position:
            before[symbol] = last[symbol]
        last[symbol] = position
        position += 1
    return runs


def _stretch(symbols: list[Hashable], position: int, period: int) -> tuple[int, int]:
    """The longest stretch around `position` in which each symbol equals the one a period earlier."""
    start, stop, end = position, position + 1, len(symbols)
    while start > period and symbols[start - 1] == symbols[start - 1 - period]:
        start -= 1
    while stop < end and stop < position + 8 and symbols[stop] == symbols[stop - period]:
        stop += 1
    stride = 16 if stop == position + 8 else 0
    while stride:  # slices are compared much faster than single symbols
        ahead = symbols[stop : stop + stride]
        if ahead and ahead == symbols[stop - period : stop - period + len(ahead)]:
            stop += len(ahead)
            stride = min(2 * stride, _LONGEST_STRIDE)
        else:
            stride //= 2
    return start, stop
