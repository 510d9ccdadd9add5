"""Findings as text: one entry for each cause, what follows from it below, one heading for each trial."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from endoscope.findings.finding import INFO, NO_STEPS

if TYPE_CHECKING:
    from endoscope.findings.finding import Finding

_WIDTH = 100
_MOST_NODES = 5  # that are named beside the first one
_MOST_FOLLOWERS = 4
_SHORT = 1  # causes and remedies that are told without -v


def told(findings: Sequence[Finding], trials: Sequence[str], verbose: bool) -> Iterator[str]:
    """All of it, in paragraphs; without `verbose` no infos, and of causes and remedies the first."""
    number = 0
    for trial in sorted({one.trial for one in findings}, key=lambda name: _worst(findings, name)):
        own = [one for one in findings if one.trial == trial]
        if len(trials) > 1 and trial:
            yield f"{trial}: {_counted(own)}"
        shown = own if verbose else [one for one in own if one.severity != INFO or one.check == NO_STEPS]
        roots = [_root(one, shown) for one in shown]
        for cause in (one for one, root in zip(shown, roots, strict=True) if root is one):
            number += 1
            followers = [one for one, root in zip(shown, roots, strict=True) if root is cause and one is not cause]
            yield entry(number, cause, followers, verbose)
    silent = [name for name in trials if name not in {one.trial for one in findings}]
    if len(trials) > 1 and findings and silent:
        yield f"Without findings: {', '.join(silent)}."


def _worst(findings: Sequence[Finding], trial: str) -> int:
    return min(one.rank for one in findings if one.trial == trial)


def _counted(findings: Sequence[Finding]) -> str:
    words = ("error", "warning", "info")
    counts = [(sum(one.severity == word for one in findings), word) for word in words]
    return ", ".join(f"{count} {word}{'s' if count > 1 and word != INFO else ''}" for count, word in counts if count)


def _cause_of(one: Finding, others: Sequence[Finding]) -> Finding | None:
    if not one.follows:
        return None
    found = (other for other in others if other.trial == one.trial and f"{other.check} at {other.node}" == one.follows)
    return next((other for other in found if other is not one), None)


def _root(one: Finding, others: Sequence[Finding]) -> Finding:
    """Upwards, until nothing explains it. Of some that explain each other, the most important one speaks for all."""
    way = [one]
    while (cause := _cause_of(way[-1], others)) is not None:
        again = next((place for place, other in enumerate(way) if other is cause), None)
        if again is not None:
            return next(other for other in others if any(other is member for member in way[again:]))
        way.append(cause)
    return way[-1]


def entry(number: int, finding: Finding, followers: Sequence[Finding] = (), verbose: bool = True) -> str:
    """One cause."""
    named = ", ".join(filter(None, (finding.check, finding.trial)))
    head = f"{number}. {finding.severity.upper()}  {finding.title}   [{named}]"
    lines = [head, *wrapped("", finding.detail)]
    if finding.check != NO_STEPS and finding.trial:
        lines += wrapped("seen: ", when(finding))
    if finding.usual is not None:
        low, high = finding.usual
        usual = f"{low:.2g} to {high:.2g} in healthy trainings of this kind"
        lines += wrapped("usual: ", usual + (f"; {finding.strength:.2g} times beyond" if finding.strength > 1 else ""))
    if finding.source:
        lines += wrapped("source: ", finding.source)
    if finding.also:
        more = len(finding.also) - _MOST_NODES
        named = ", ".join(finding.also[:_MOST_NODES]) + (f" and {more} more" if more > 0 else "")
        lines += wrapped("also: ", named)
    most = None if verbose or finding.check == NO_STEPS else _SHORT
    lines += [line for cause in finding.causes[:most] for line in wrapped("cause? ", cause)]
    lines += [line for remedy in finding.remedies[:most] for line in wrapped("try: ", remedy)]
    shown = followers if verbose else followers[:_MOST_FOLLOWERS]
    for one in shown:
        lines += wrapped("└ ", f"{one.severity}: {one.title} [{one.check}]" + (f": {one.detail}" if verbose else ""))
    if len(followers) > len(shown):
        lines += wrapped("└ ", f"… and {len(followers) - len(shown)} more that follow")
    return "\n".join(lines)


def when(finding: Finding) -> str:
    steps = f"step {finding.first_step}"
    if finding.last_step != finding.first_step:
        steps = f"steps {finding.first_step} to {finding.last_step}"
    types = f" of type {', '.join(map(repr, finding.types))}" if any(finding.types) else ""
    samples = f"; samples {', '.join(map(str, finding.samples[:10]))}" if finding.samples else ""
    return f"{steps}{types}{samples}"


def wrapped(head: str, text: str) -> list[str]:
    start = " " * 3
    return textwrap.wrap(text, _WIDTH, initial_indent=start + head, subsequent_indent=start + " " * len(head))
