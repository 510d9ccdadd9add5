"""Trainings with bugs that people really had, each with its fix, and trainings with nothing wrong.

Nothing here was written with a look at the checks. `benchmarks/findings_suite.py` runs all of it and says what was
found. The files `practice_*.py` hold cases for learning only.
"""

import importlib
import pkgutil

from .registry import BUGS, HEALTHY, Bug, Healthy, half_of

__all__ = ["BUGS", "HEALTHY", "Bug", "Healthy", "half_of", "load"]


def load() -> None:
    """Import every file of this folder, so that all cases are in `BUGS` and `HEALTHY`."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
