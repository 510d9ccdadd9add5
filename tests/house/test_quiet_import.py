"""Importing does nothing: no heavy library, no output, no waiting. Each case is a fresh interpreter."""

import pytest

from tests.house.tree import run_python

HEAVY = ("torch", "numpy", "pyarrow", "pandas", "transformers")

TIME_THE_IMPORT = """
import time
start = time.perf_counter()
import endoscope
print(time.perf_counter() - start)
"""


def loaded_after(statement: str) -> tuple[set[str], str]:
    """Which heavy libraries are loaded after a statement, and what the statement printed."""
    result = run_python(f"{statement}\nprint('#', *[name for name in {HEAVY!r} if name in sys.modules])")
    assert result.returncode == 0, result.stderr
    printed, _, names = result.stdout.rpartition("#")
    return set(names.split()), printed + result.stderr


def test_import_loads_nothing_heavy_and_prints_nothing() -> None:
    assert loaded_after("import endoscope") == (set(), "")


def test_the_command_line_loads_nothing_heavy() -> None:
    assert loaded_after("import endoscope.cli") == (set(), "")


def test_the_errors_load_nothing_heavy() -> None:
    assert loaded_after("import endoscope; endoscope.errors") == (set(), "")


@pytest.mark.parametrize(
    "package",
    ["schema", "analysis", "markup", "store", "query", "server", "capture.data", "capture.views", "capture.drawing"],
)
def test_every_module_of_the_shared_layers_loads_without_torch(package: str) -> None:
    """The viewer uses these layers on machines that have no torch."""
    everything = (
        f"import importlib, pkgutil, endoscope.{package} as package\n"
        "for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    importlib.import_module(found.name)"
    )
    loaded, printed = loaded_after(everything)
    assert "torch" not in loaded
    assert printed == ""


def test_import_is_fast() -> None:
    """The best of three fresh interpreters: a busy machine or a cold disk is not what is measured."""
    seconds = min(float(run_python(TIME_THE_IMPORT).stdout) for _ in range(3))
    assert seconds < 0.050
