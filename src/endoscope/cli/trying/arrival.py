"""Calls a function as soon as a module has been imported.

Whatever a script sets before it imports torch (threads, devices) must still be read by torch, so torch is not imported
before the script does it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Callable, Sequence


def when_imported(name: str, call: Callable[[], None]) -> None:
    if name in sys.modules:
        call()
    else:
        sys.meta_path.insert(0, _Finder(name, call))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one module, as the others would have found it, and leaves."""

    def __init__(self, name: str, call: Callable[[], None]) -> None:
        self._name, self._call = name, call

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: object = None if spec is None else spec.loader
        if loader is not None:
            _call_after(loader, self._call)
        return spec


def _call_after(loader: object, call: Callable[[], None]) -> None:
    execute = loader.exec_module  # type: ignore[attr-defined]

    def exec_module(module: types.ModuleType) -> None:
        execute(module)
        call()

    loader.exec_module = exec_module  # type: ignore[attr-defined]
