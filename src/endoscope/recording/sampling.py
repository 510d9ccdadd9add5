"""Which samples of a batch are kept raw."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from itertools import islice
from typing import Any

from endoscope.errors import BadArgument


def choose(
    batch_size: int,
    count: int,
    *,
    categories: Sequence[Any] | None = None,
    worst: Iterable[int] = (),
    so_far: Mapping[Any, int] | None = None,
    seed: int = 0,
) -> tuple[int, ...]:
    """Choose at most `count` samples of a batch, in ascending order.

    Those in `worst` come first, in the order given. The rest is balanced over the categories (one for each sample of
    the batch): whichever category has the fewest is next. Categories that were chosen less often `so_far`, in earlier
    steps, come before others, and where that does not tell either, `seed` does; give it the number of the step. Of one
    category, and where there are none, the first samples of the batch are taken: neighbours are cheap to copy, and a
    batch that is never shuffled shows the same samples over time. No random generator is used or changed.
    """
    count = min(count, batch_size)
    if count <= 0:
        return ()
    chosen = _valid(worst, batch_size)[:count]
    missing = count - len(chosen)
    if categories is None:
        taken = set(chosen)
        chosen += islice((sample for sample in range(batch_size) if sample not in taken), missing)
    elif missing:
        chosen += _balanced(_labels(categories, batch_size), chosen, missing, so_far or {}, seed)
    return tuple(sorted(chosen))


def _valid(samples: Iterable[int], batch_size: int) -> list[int]:
    """Without repetitions and without those that the batch does not have; -1 is the last one."""
    listed = [int(sample) for sample in samples]
    inside = [sample % batch_size for sample in listed if -batch_size <= sample < batch_size]
    return list(dict.fromkeys(inside))


def _labels(categories: Sequence[Any], batch_size: int) -> list[Hashable]:
    listed = categories.tolist() if hasattr(categories, "tolist") else list(categories)
    if len(listed) != batch_size:
        raise BadArgument(
            f"categories has {len(listed)} entries, and the batch has {batch_size} samples. Give one category for each "
            "sample of the batch, in its order."
        )
    return [label if isinstance(label, Hashable) else repr(label) for label in listed]


def _balanced(labels: list[Hashable], chosen: list[int], count: int, so_far: Mapping[Any, int], seed: int) -> list[int]:
    """`count` more samples, so that all categories of the batch are chosen about equally often."""
    times = Counter(labels[sample] for sample in chosen)
    taken = set(chosen)
    waiting: dict[Hashable, list[int]] = {}  # category -> its samples, the first one last
    for sample in reversed(range(len(labels))):
        if sample not in taken:
            waiting.setdefault(labels[sample], []).append(sample)
    # Lots are drawn by name: the order must not depend on which category a batch happens to begin with.
    queue = [
        (times[label], so_far.get(label, 0), _lot(seed, label), number, samples)
        for number, (label, samples) in enumerate(waiting.items())
    ]
    heapify(queue)
    more: list[int] = []
    while queue and len(more) < count:
        so_often, earlier, lot, number, samples = queue[0]
        more.append(samples.pop())
        if samples:
            heapreplace(queue, (so_often + 1, earlier, lot, number, samples))
        else:
            heappop(queue)
    return more


def _lot(seed: int, label: Hashable) -> bytes:
    return hashlib.blake2b(f"{seed} {label!r}".encode(), digest_size=8).digest()
