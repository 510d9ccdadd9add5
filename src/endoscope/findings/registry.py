"""All checks, found by looking into the folder `checks`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import LookupFailed
from endoscope.findings import checks
from endoscope.findings.check import Check


@cache
def all_checks() -> dict[str, Check]:
    """Name -> check, in order of the alphabet."""
    names = sorted(module.name for module in pkgutil.iter_modules(checks.__path__))
    found = [importlib.import_module(f"{checks.__name__}.{name}").CHECK for name in names]
    return {check.name: check for check in found}


def choose(names: Iterable[str] | None) -> list[Check]:
    """The checks with these names, or all; an error names the nearest if there is none."""
    known = all_checks()
    if names is None:
        return list(known.values())
    names = [names] if isinstance(names, str) else list(names)
    return [known[require(name)] for name in names]


def require(name: str) -> str:
    """The name, if there is such a check."""
    if name not in all_checks():
        near = ", ".join(repr(other) for other in nearest(str(name), all_checks(), 3))
        raise LookupFailed(f"There is no check {name!r}. Nearest: {near}. docs/reference/findings.md lists all.")
    return name
