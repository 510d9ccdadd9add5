"""`endoscope.differences`: which tensors and units differ between two types of step, two trials or two categories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from urllib.parse import quote

import numpy as np

from endoscope.errors import BadArgument
from endoscope.findings.difference import Difference
from endoscope.findings.differing import categories, sides, steps
from endoscope.findings.differing.contrasts import Contrasts
from endoscope.findings.differing.testing import Tested, beyond_chance
from endoscope.findings.facts import Facts
from endoscope.findings.listed import Listed
from endoscope.query.catalog import Recordings
from endoscope.query.open import look
from endoscope.query.recording import Recording
from endoscope.schema.recording import Key

SMALLEST = 0.02  # share of the numbers themselves; what differs by less is of no interest, however certain it is
_FAMILIES = 2  # tensors and units, each corrected by itself: thousands of units must not hide what tensors show
_PLAIN = frozenset(("mean", "std", "abs_mean", "zeros", "nans", "infs"))  # preferred where others say the same
_LARGE_EFFECT = 4.0  # sides that do not overlap; larger effects are no better


def differences(
    path: str | PathLike[str],
    *,
    type: tuple[str, str] | None = None,
    trial: tuple[str, str] | None = None,
    category: tuple[str, str] | None = None,
    confidence: float = 0.95,
) -> list[Difference]:
    """What differs consistently between two types of step, two trials or two categories of samples, ranked.

    One of `type`, `trial` and `category` names the two sides. `path` is a trial; for `trial=("a", "b")` the folder of
    both. `confidence`: how sure it is that not a single one of the reported differences is chance.
    """
    _check(type, trial, category, confidence)
    found = look(path)
    if trial is not None:
        if isinstance(found, Recording):
            raise BadArgument(
                f"trial={trial!r} compares two trials of a folder, and {path} is a single trial. Type the folder."
            )
        recordings = [found[_text(name)] for name in trial]
    else:
        recordings = [_one_trial(found, path)]
    facts = [Facts(recording) for recording in recordings]
    with np.errstate(all="ignore"):  # NaN means "not recorded" here
        result = _of_facts(facts, type, category, confidence)
    for recording in recordings:
        recording.tables.release()
    return Listed(result)


def _of_facts(
    facts: Sequence[Facts], type_: tuple[str, str] | None, category: tuple[str, str] | None, confidence: float
) -> list[Difference]:
    families: list[Iterable[Contrasts]]
    if category is not None:
        chosen = categories.of_categories(facts[0], _text(category[0]), _text(category[1]))
        names, word = chosen.names, "category"
        families = [categories.of_tensors(chosen), categories.of_units(chosen)]
    else:
        is_types = type_ is not None
        both = sides.of_types(facts[0], _text(type_[0]), _text(type_[1])) if type_ else sides.of_trials(*facts)
        names, word = both.names, "type" if is_types else "trial"
        families = [steps.of_tensors(both), steps.of_units(both)]
    results = [one for family in families for one in beyond_chance(family, confidence, SMALLEST, _FAMILIES)]
    return _ranked(results, names, word, facts[0])


def _ranked(results: Iterable[Tested], names: tuple[str, str], word: str, facts: Facts) -> list[Difference]:
    """One entry for each tensor and unit, told by its strongest statistic."""
    groups: dict[tuple[object, ...], list[Tested]] = {}
    for one in results:
        key = one.subject.key
        groups.setdefault((key.node, key.role, key.of, one.subject.unit), []).append(one)
    ordered = sorted((sorted(group, key=_strength) for group in groups.values()), key=lambda group: _strength(group[0]))
    return [_difference(group, names, word, facts) for group in ordered]


def _strength(one: Tested) -> tuple[float, float, str]:
    """For sorting: how certain and how large the difference is; smaller is stronger."""
    low, high = one.interval
    certain = min(max(min(abs(low), abs(high)), 0.1), _LARGE_EFFECT) if low * high > 0 else 0.1
    plain = 1.0 if one.subject.statistic in _PLAIN else 0.8
    return -certain * min(one.size, 1.0) * plain, -abs(one.effect), one.subject.key.node


def _difference(group: Sequence[Tested], names: tuple[str, str], word: str, facts: Facts) -> Difference:
    best = group[0]
    key, statistic = best.subject.key, best.subject.statistic
    others = dict.fromkeys(one.subject.statistic for one in group if one.subject.statistic != statistic)
    return Difference(
        a=names[0], b=names[1], trial=facts.trial, node=key.node, role=key.role, pass_=key.pass_, of=key.of,
        unit=best.subject.unit, statistic=statistic, also=tuple(others),
        passes=tuple(sorted({one.subject.key.pass_ for one in group})), a_mean=best.a, b_mean=best.b,
        effect=best.effect, interval=best.interval, p=best.p, size=best.size, agreement=best.agreement,
        n_a=best.counts[0], n_b=best.counts[1], first_step=best.first_step, source=_source(key, facts),
        link=_link(best, names, word, facts.trial),
    )  # fmt: skip


def _source(key: Key, facts: Facts) -> str:
    """The line that made the tensor; of a parameter, the line that first reads it."""
    place = (key.node, key.role, key.pass_)
    readers = facts.structure.children.get(place, ())
    lines = [facts.values.tensors[facts.values.row_of[r]].key.source for r in readers if r in facts.values.row_of]
    return key.source or next((line for line in lines if line), "")


def _link(one: Tested, names: tuple[str, str], word: str, trial: str) -> str:
    """The view of the page that shows both sides beside each other."""
    key = one.subject.key
    words = {"v": "1", "tab": "compare" if word != "category" else "graph", "trial": trial}
    if word == "trial":
        words |= {"trials": ",".join(map(_listed, names)), "b.trial": names[1]}
    if word == "type":
        words |= {"type": _marked(names[0]), "b.type": _marked(names[1])}
    words |= {"step": str(one.first_step), "of": "value" if key.of == "parameter" else key.of, "node": key.node}
    words |= {"pass": str(key.pass_)} if key.pass_ != 1 else {}
    words |= {"role": _marked(key.role)} if key.role else {}
    return "#" + "&".join(f"{name}={quote(text, safe=':/,!')}" for name, text in words.items())


def _marked(text: str) -> str:
    """As the page writes texts that may be empty."""
    return ("!" if text[0] in "-!" else "") + text if text else "-"


def _listed(text: str) -> str:
    return "".join("!" + letter if letter in "!,-" else letter for letter in text)


def _one_trial(found: Recording | Recordings, path: object) -> Recording:
    if isinstance(found, Recording):
        return found
    names = list(found)
    if len(names) == 1:
        return found[names[0]]
    raise BadArgument(
        f"{path} has {len(names)} trials ({', '.join(map(repr, names[:5]))}). Types of step and categories are "
        "compared within one: type its folder. Trials are compared by trial=(…, …)."
    )


def _check(type_: object, trial: object, category: object, confidence: float) -> None:
    given = {
        name: sides for name, sides in (("type", type_), ("trial", trial), ("category", category)) if sides is not None
    }
    example = 'such as type=("short", "long"), trial=("first", "second") or category=("0", "7")'
    if len(given) != 1:
        seen = ", ".join(f"{name}={value!r}" for name, value in given.items()) or "nothing"
        raise BadArgument(f"differences() compares along one line, {example}; given was {seen}.")
    name, sides = next(iter(given.items()))
    if not isinstance(sides, (tuple, list)) or len(sides) != 2 or sides[0] == sides[1]:
        raise BadArgument(f"{name}={sides!r} does not name two different sides, {example}.")
    if not isinstance(confidence, (int, float)) or not 0.5 <= confidence < 1:
        raise BadArgument(f"confidence is {confidence!r}; it is a number from 0.5 to below 1, such as 0.95.")


def _text(name: object) -> str:
    """Categories are kept as text; a number that somebody types means the same."""
    return str(name)
