"""All checks: the files in the folder `checks`, and those that somebody registers."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

from endoscope.analysis.selecting.patterns import nearest
from endoscope.errors import BadArgument, LookupFailed
from endoscope.findings import checks
from endoscope.findings.check import Check
from endoscope.schema import plugins

_registered: dict[str, Check] = {}


def all_checks() -> dict[str, Check]:
    """Name -> check, in order of the alphabet; those that were registered come last."""
    plugins.load()
    return {**_built_in(), **_registered}


@cache
def _built_in() -> dict[str, Check]:
    names = sorted(module.name for module in pkgutil.iter_modules(checks.__path__))
    found = [importlib.import_module(f"{checks.__name__}.{name}").CHECK for name in names]
    return {check.name: check for check in found}


def register(check: Check) -> Check:
    """Run a check of your own with all others from now on, in this process; one of the same name takes its place.

    The page and `endoscope check` run in processes of their own. They find what an installed package registers that
    names itself as a plug-in (`schema.plugins`).
    """
    if not isinstance(check, Check):
        raise BadArgument(f"register() takes a Check(name=…, description=…, stage=…, run=…), not {check!r}.")
    if check.name in _built_in():
        raise BadArgument(f"{check.name!r} is a check of Endoscope. Give yours another name.")
    _registered[check.name] = check
    return check


def forget(name: str) -> None:
    """Undo a registration."""
    _registered.pop(name, None)


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
        raise LookupFailed(f"There is no check {name!r}. Nearest: {near}. `endoscope check --list` prints all.")
    return name
