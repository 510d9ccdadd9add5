"""The hook that builds the page whenever the package is built: pip calls hatchling, hatchling calls this."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _bundle() -> ModuleType:
    """frontend/bundle.py, which is no package: pip builds in a process that has only this folder."""
    path = Path(__file__).resolve().parent / "frontend" / "bundle.py"
    spec = importlib.util.spec_from_file_location("endoscope_bundle", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class PageHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs for wheels, editable installations and source archives, also while only metadata is asked for."""

    def dependencies(self) -> list[str]:
        return list(_bundle().needed_packages())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        bundle = _bundle()
        try:
            bundle.build()
        except bundle.PageError as problem:
            self.app.abort(str(problem))
