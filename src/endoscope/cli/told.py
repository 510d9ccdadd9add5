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
_WITH_ADVICE = 3  # of the causes of a trial, without -v; of several trials the first one each
_MOST_CAUSES = 8  # that are told at all, of all trials together; at least so many of each:
_LEAST_CAUSES = 3


def told(findings: Sequence[Finding], trials: Sequence[str], verbose: bool) -> Iterator[str]:
    """All of it, in paragraphs; without `verbose` no infos, and of most causes the title: it fits a screen."""
    number, with_findings = 0, {one.trial for one in findings}
    most = max(_LEAST_CAUSES, _MOST_CAUSES // max(len(with_findings), 1))
    for trial in sorted(with_findings, key=lambda name: (_worst(findings, name), name)):
        own = [one for one in findings if one.trial == trial]
        if len(trials) > 1 and trial:
            yield f"{trial}: {_counted(own)}"
        shown = own if verbose else [one for one in own if one.severity != INFO or one.check == NO_STEPS]
        roots = [_root(one, shown) for one in shown]
        causes = [one for one, root in zip(shown, roots, strict=True) if root is one]
        advised = 1 if len(trials) > 1 else _WITH_ADVICE
        for place, cause in enumerate(causes if verbose else causes[:most]):
            number += 1
            followers = [one for one, root in zip(shown, roots, strict=True) if root is cause and one is not cause]
            if verbose or cause.check == NO_STEPS:
                yield entry(number, cause, followers)
            else:
                yield "\n".join(_brief(number, cause, followers, with_advice=place < advised))
        if not verbose and len(causes) > most:
            yield f"… and {len(causes) - most} more: see -v"
    silent = [name for name in trials if name not in with_findings]
    if len(trials) > 1 and findings and silent:
        yield f"Without findings: {', '.join(silent)}"


def _brief(number: int, finding: Finding, followers: Sequence[Finding], *, with_advice: bool) -> list[str]:
    """In a few lines: what and where, the likeliest cause, the first remedy, and what follows from it."""
    head = f"{number}. {finding.severity.upper()}  "
    lines = textwrap.wrap(
        f"{finding.title}   [{finding.check}]", _WIDTH, initial_indent=head, subsequent_indent=" " * 3,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    if with_advice:
        lines += [line for cause in finding.causes[:1] for line in wrapped("cause? ", cause)]
        lines += [line for remedy in finding.remedies[:1] for line in wrapped("try: ", remedy)]
        lines += wrapped("source: ", finding.source) if finding.source else []
        if followers:
            places = [f"{one.check} at {one.node}" if one.node else one.check for one in followers[:_MOST_FOLLOWERS]]
            more = [f"{len(followers) - len(places)} more"] if len(followers) > len(places) else []
            lines += wrapped("└ what follows: ", ", ".join([*places, *more]))
    elif followers:
        lines[-1] += f"   └ {len(followers)} more follow"
    return lines


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


def entry(number: int, finding: Finding, followers: Sequence[Finding] = ()) -> str:
    """One cause, with all that is known about it."""
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
    lines += [line for cause in finding.causes for line in wrapped("cause? ", cause)]
    lines += [line for remedy in finding.remedies for line in wrapped("try: ", remedy)]
    for one in followers:
        lines += wrapped("└ ", f"{one.severity}: {one.title} [{one.check}]: {one.detail}")
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
