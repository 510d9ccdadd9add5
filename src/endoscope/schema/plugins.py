"""Installed packages that extend Endoscope: they register statistics and checks when they are imported.

    [project.entry-points."endoscope.plugins"]      in the pyproject.toml of such a package
    my_checks = "my_package.checks"                 a module

They are imported before a run begins and before checks are run, also by the page and by the command line. Nothing that
lies beside a recording is ever imported.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.metadata import entry_points

from endoscope.errors import PluginWarning

GROUP = "endoscope.plugins"


@cache
def load() -> None:
    """Import them, once; what fails is said."""
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except Exception as problem:  # somebody else's code must not keep a training or the page from starting
            warnings.warn(
                f"the plug-in {entry.name!r} ({entry.value}) is left out, it could not be imported: "
                f"{type(problem).__name__}: {problem}",
                PluginWarning,
                stacklevel=3,
            )
