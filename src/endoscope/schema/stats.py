"""The vocabulary of statistics: what is counted and measured about a tensor, under which names.

    BUILT_IN, @statistic(…) ─► registered() ─► columns in memory and on disk, SQL, menus of the page, labels of the
                                               report, the table in the documentation, test data

Both the side that measures and the side that reads use it, so nothing here needs torch or numpy.
In short: counts are over all elements, everything else is over the finite ones, and is NaN where there are none.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, overload
from weakref import WeakSet

from endoscope.errors import BadArgument
from endoscope.schema import twins
from endoscope.schema.twins import Twin

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
SCALES = ("log", "linear", "diverging")
#: Ways to merge a statistic of the parts of a tensor into that of the whole; see `query.ranks.parts.Parts`.
MERGES = ("sum", "mean", "min", "max", "norm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic. One of three fields says how it is measured:

    `of`       a formula over what is known about some numbers (`stats.formulas.Rows`), for other devices; one line of
               the same name in `stats/kernels.c` says it for the CPU. Only these may be of samples and of units, too
    `level`    a quantile: the share of numbers below it
    `measure`  a function of the finite numbers of a tensor, which lie in a flat tensor that is not empty

    `merge` says how that of a whole tensor follows from those of its parts, which lie on several ranks: one of
    `MERGES`, or a formula over what was recorded of the parts (`query.ranks.parts.Parts`). None: it does not follow.
    Quantiles have none: they are read off the histogram of the whole.
    """

    name: str
    label: str  # how the page and the report call it
    about: str  # what it is, for the documentation
    twin: Twin | None = None  # the same in plain Python; the tests hold one against the other
    scale: str = "log"  # of colours: log for magnitudes, linear for shares, diverging for numbers of both signs
    of: Callable[[Any], Any] | None = None
    level: float | None = None
    measure: Callable[[Tensor], Any] | None = None
    is_count: bool = False  # a whole number about all elements; colours show it as their share
    of_samples: bool = False  # also of each sample
    of_units: bool = False  # also of each unit over the batch
    merge: str | Callable[[Any], Any] | None = None

    def forget(self) -> None:
        """Undo the registration of a statistic that is not built in."""
        if self not in BUILT_IN and _known.get(self.name) is self:
            _change(self.name, None)


def _quantile(level: float, label: str) -> Statistic:
    return Statistic(
        name=f"q{round(100 * level):02}", label=label, about=f"The number below which {level:.0%} of the elements are.",
        twin=lambda numbers: twins.quantile(numbers, level), level=level, scale="diverging",
    )  # fmt: skip


# Sums of squares are of scaled numbers, so that none leaves its range; only a quotient of both is a statistic.
BUILT_IN = (
    Statistic(
        name="count", label="elements", about="How many elements there are.", twin=twins.count,
        of=lambda rows: rows.finite + rows.nans + rows.infs, is_count=True, scale="linear", merge="sum",
    ),
    Statistic(
        name="zeros", label="zeros", twin=twins.zeros,
        about="How many are zero, `-0.0` included. Divided by `count` it says how sparse a tensor is.",
        of=lambda rows: rows.zeros, is_count=True, scale="linear", of_samples=True, merge="sum",
    ),
    Statistic(
        name="nans", label="NaN", about="How many are not a number.", twin=twins.nans,
        of=lambda rows: rows.nans, is_count=True, scale="linear", of_samples=True, merge="sum",
    ),
    Statistic(
        name="infs", label="infinities", about="How many are infinite, of either sign.", twin=twins.infs,
        of=lambda rows: rows.infs, is_count=True, scale="linear", of_samples=True, merge="sum",
    ),
    Statistic(
        name="neg_infs", label="−infinities", about="How many of those are negative.", twin=twins.neg_infs,
        of=lambda rows: rows.neg_infs, is_count=True, scale="linear", merge="sum",
    ),
    Statistic(
        name="mean", label="mean", about="The sum, divided by the number of finite elements.", twin=twins.mean,
        of=lambda rows: (rows.mean / rows.scale).clip(rows.low, rows.high), scale="diverging",
        of_samples=True, of_units=True, merge="mean",
    ),
    Statistic(
        name="std", label="std", twin=twins.std,
        about="The standard deviation of the population: the root of the mean squared distance from the mean, divided "
        "by n and not by n − 1. Exactly 0 if all elements are equal, so also for a single one.",
        of=lambda rows: (rows.around / rows.finite) ** 0.5 / rows.scale, of_samples=True, of_units=True,
        merge=lambda parts: parts.rms(parts.hypot(parts["std"], parts["mean"] - parts.mean(parts["mean"]))),
    ),
    Statistic(
        name="abs_mean", label="abs mean", about="The mean of the magnitudes.", twin=twins.abs_mean,
        of=lambda rows: rows.absolute / rows.finite / rows.scale, of_samples=True, merge="mean",
    ),
    Statistic(
        name="min", label="min", about="The smallest element.", twin=min,
        of=lambda rows: rows.low, scale="diverging", of_samples=True, merge="min",
    ),
    Statistic(
        name="max", label="max", about="The largest element.", twin=max,
        of=lambda rows: rows.high, scale="diverging", of_samples=True, merge="max",
    ),
    Statistic(
        name="abs_max", label="abs max", about="The largest magnitude.", twin=twins.abs_max,
        of=lambda rows: rows.high.clip(-rows.low), of_samples=True, of_units=True, merge="max",
    ),
    Statistic(
        name="norm", label="norm", about="The Euclidean (L2) norm: the root of the sum of squares.", twin=twins.norm,
        of=lambda rows: (rows.around + rows.finite * rows.mean**2) ** 0.5 / rows.scale, of_samples=True, merge="norm",
    ),
    _quantile(0.01, "1st percentile"),
    _quantile(0.05, "5th percentile"),
    _quantile(0.25, "25th percentile"),
    _quantile(0.50, "median"),
    _quantile(0.75, "75th percentile"),
    _quantile(0.95, "95th percentile"),
    _quantile(0.99, "99th percentile"),
)  # fmt: skip

_known = {one.name: one for one in BUILT_IN}
_caches: list[Callable[[], None]] = []  # empty those that depend on which statistics there are
#: Whoever writes files at the moment: their columns cannot change any more.
writers: WeakSet[Any] = WeakSet()


def registered() -> tuple[Statistic, ...]:
    """All statistics, in the order of the columns."""
    return tuple(_known.values())


def described() -> dict[str, dict[str, str]]:
    """What a recording says about statistics that a reader may not know."""
    own = [one for one in registered() if one not in BUILT_IN]
    found = {one.name: {"label": one.label, "about": one.about, "scale": one.scale} for one in own}
    for one in own:
        if isinstance(one.merge, str):  # a formula is known only to those who have registered it
            found[one.name]["merge"] = one.merge
    return found


def as_described(name: str, found: Any) -> Statistic:
    """A statistic that somebody else registered; what they said about it may be lost."""
    said = found if isinstance(found, dict) else {}
    scale = said["scale"] if said.get("scale") in SCALES else "log"
    label, about = said.get("label") or name.replace("_", " "), said.get("about", "")
    merge = said["merge"] if said.get("merge") in MERGES else None
    return Statistic(name=name, label=str(label), about=str(about), scale=scale, merge=merge)


def statistic(
    name: str,
    *,
    label: str = "",
    about: str = "",
    scale: str = "log",
    twin: Twin | None = None,
    merge: str | Callable[[Any], Any] | None = None,
) -> Callable[[Callable[[Tensor], Any]], Statistic]:
    """Record a statistic of your own, of every tensor that is recorded from the next `Run` on.

        @endoscope.statistic("tailedness", about="How heavy the tails are; 3 for a normal distribution.")
        def tailedness(numbers):  # the finite numbers of one tensor, flat and never empty
            around = numbers - numbers.mean()
            return (around**4).mean() / (around**2).mean() ** 2

    The function returns one number, best as a tensor without dimensions on the device of the numbers. It costs a few
    torch calls for each tensor. The decorator returns a `Statistic`; its `forget()` removes it again.

    `merge` says how to compute the number of a tensor from those of its parts on several ranks: "sum", "mean"
    (each part counts by its finite elements), "min", "max", "norm", or a formula such as
    `lambda parts: parts.mean(parts["tailedness"])`. Without it, a tensor of several parts has a gap.
    """

    def register(measure: Callable[[Tensor], Any]) -> Statistic:
        if not callable(measure):
            raise BadArgument(f"@statistic({name!r}) stands above a function of a tensor, not above {measure!r}.")
        made = Statistic(
            name=name, label=label or name.replace("_", " "), about=about or (measure.__doc__ or "").strip(),
            twin=twin, scale=scale, measure=measure, merge=merge,
        )  # fmt: skip
        _change(name, made)
        return made

    _check_name(name)
    if scale not in SCALES:
        raise BadArgument(f"scale={scale!r} of the statistic {name!r} is none of {', '.join(map(repr, SCALES))}.")
    if merge is not None and not callable(merge) and merge not in MERGES:
        raise BadArgument(
            f"merge={merge!r} of the statistic {name!r} is none of {', '.join(map(repr, MERGES))}, and no function. "
            "Leave it out if the number of a whole does not follow from those of its parts."
        )
    return register


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
        raise BadArgument(
            f"The name {name!r} is not valid for a statistic: use small letters, digits and _. "
            'Call it, for instance, "tailedness".'
        )
    if name in _RESERVED or keyword.iskeyword(name) or any(one.name == name for one in BUILT_IN):
        raise BadArgument(f"{name!r} is taken: tables have such a column already. Give the statistic another name.")


def _change(name: str, made: Statistic | None) -> None:
    """Register a statistic, or forget it."""
    if writers:
        raise BadArgument(
            f"The statistic {name!r} cannot be added or removed while a run is open, because the columns of its "
            "files are fixed. Register statistics before Run(…), and close the run before that."
        )
    if made is None:
        del _known[name]
    else:
        _known[name] = made
    for empty in _caches:
        empty()


def derived(function: Callable[..., T]) -> Callable[..., T]:
    """`functools.cache` for what depends on which statistics there are."""
    cached = cache(function)
    _caches.append(cached.cache_clear)
    return cached


class Live(Sequence[T]):
    """What follows from the statistics that are registered, always as it is now."""

    def __init__(self, derive: Callable[[], tuple[T, ...]]) -> None:
        self._now = derived(derive)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T]: ...
    def __getitem__(self, place: int | slice) -> T | Sequence[T]:
        return self._now()[place]

    def __len__(self) -> int:
        return len(self._now())

    def __iter__(self) -> Iterator[T]:
        return iter(self._now())

    def __repr__(self) -> str:
        return repr(self._now())


#: Names of statistics of the whole tensor, in the order of the columns.
WHOLE: Sequence[str] = Live(lambda: tuple(_known))
#: Those that are measured in one pass over the numbers.
SWEPT = tuple(one.name for one in BUILT_IN if one.measure is None)
COUNTS = tuple(one.name for one in BUILT_IN if one.is_count)
QUANTILES = {one.name: one.level for one in BUILT_IN if one.level is not None}
NUMBERS = tuple(name for name in SWEPT if name not in COUNTS and name not in QUANTILES)
SAMPLE = tuple(one.name for one in sorted(BUILT_IN, key=lambda one: one.is_count) if one.of_samples)  # counts last
UNIT = tuple(one.name for one in BUILT_IN if one.of_units)
# Other columns of tables with statistics, and words that mean something else in rules.
_RESERVED = (
    "ordinal", "step", "key", "type", "trial", "node", "role", "pass", "of", "kind", "shape", "dtype", "batch_dim",
    "module", "source", "raw", "hist", "hist_first", "sample", "abs",
)  # fmt: skip

UNIT_CAP = 4096  # at most so many units of one tensor are kept

# The histogram has the same bins for every tensor, so histograms are merged by adding their counts:
# bin 128 is zero, to its right two bins for every power of two from 2^-32 on, to its left their mirror image.
LOWEST_EXPONENT = -32
HIGHEST_EXPONENT = 31
BINS_PER_SIGN = 2 * (HIGHEST_EXPONENT - LOWEST_EXPONENT + 1)
ZERO_BIN = BINS_PER_SIGN
HISTOGRAM_BINS = 2 * BINS_PER_SIGN + 1


def histogram_edges() -> list[float]:
    """The 258 edges of the 257 bins, from -2^32 to 2^32.

    The zero bin has no width. The bins beside it also hold all smaller magnitudes, so they begin at zero;
    the outermost bins also hold all larger finite magnitudes.
    """
    exponents = range(LOWEST_EXPONENT, HIGHEST_EXPONENT + 1)
    starts = [math.ldexp(mantissa, exponent) for exponent in exponents for mantissa in (1.0, 1.5)]
    positive = [0.0, *starts[1:], math.ldexp(1.0, HIGHEST_EXPONENT + 1)]
    return [-edge for edge in reversed(positive)] + positive


def histogram_bin(value: float) -> int:
    """The index of the bin that a finite value is counted in."""
    if value == 0:
        return ZERO_BIN
    fraction, exponent = math.frexp(abs(value))  # 0.5 <= fraction < 1
    rank = 2 * (exponent - 1 - LOWEST_EXPONENT) + (fraction >= 0.75)
    rank = min(max(rank, 0), BINS_PER_SIGN - 1)
    return ZERO_BIN + 1 + rank if value > 0 else ZERO_BIN - 1 - rank
