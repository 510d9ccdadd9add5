"""Builds the page and the kernels whenever the package is built: pip calls hatchling, hatchling calls this hook."""

from __future__ import annotations

import importlib.util
import sysconfig
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def _module(path: str) -> ModuleType:
    """A file of this folder, loaded by its path: pip builds in a process that has nothing else of ours."""
    file = Path(__file__).resolve().parent / path
    spec = importlib.util.spec_from_file_location(f"endoscope_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Runs for wheels, editable installations and source archives, also while only metadata is asked for."""

    def dependencies(self) -> list[str]:
        return list(_module("frontend/bundle.py").needed_packages())

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        bundle = _module("frontend/bundle.py")
        try:
            bundle.build()
        except bundle.PageError as problem:
            self.app.abort(str(problem))
        if self.target_name == "wheel":
            self._build_kernels(build_data)

    def _build_kernels(self, build_data: dict[str, Any]) -> None:
        """A wheel with a library is for one platform, but for every Python. Without a compiler it is for all."""
        kernels = _module("src/endoscope/stats/build.py")
        try:
            kernels.build()
        except kernels.CannotBuild as problem:
            kernels.LIBRARY.unlink(missing_ok=True)  # an older one would not be used
            self.app.display_warning(f"Statistics will be computed with plain torch calls, which is slower. {problem}")
        else:
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data |= {"pure_python": False, "tag": f"py3-none-{platform}"}
