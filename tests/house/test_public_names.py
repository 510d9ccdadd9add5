"""The public list is short and changes only on purpose."""

import importlib
import inspect

import pytest

import endoscope
from tests.house.tree import PACKAGE, run_python

PUBLIC = [
    "Run", "__version__", "anomaly", "changes", "compare", "correlate", "diagnose", "differences", "editing", "edits",
    "errors", "load", "open", "origin", "policies", "probe_batch", "rerun", "show", "statistic", "to_folder", "trace",
    "tracing", "validate",
]  # fmt: skip
MORE_PARAMETERS = {"Run": 8}  # all but the first by keyword: what to record, when, how much


def test_the_public_list() -> None:
    assert sorted(endoscope.__all__) == PUBLIC


def test_dir_shows_exactly_the_public_names() -> None:
    assert dir(endoscope) == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(endoscope, name) is not None


@pytest.mark.parametrize("name", sorted(endoscope._TARGETS))
def test_every_target_is_public_and_documented_in_code(name: str) -> None:
    assert name in endoscope.__all__
    assert inspect.getdoc(getattr(endoscope, name)), f"endoscope.{name} has no docstring"


def test_no_module_is_named_like_a_public_function() -> None:
    """Importing a module sets an attribute of that name on the package, which would hide the function."""
    functions = {name for name, target in endoscope._TARGETS.items() if ":" in target}
    modules = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert not functions & modules


@pytest.mark.parametrize("name", [name for name, target in endoscope._TARGETS.items() if ":" in target])
def test_functions_have_at_most_six_parameters(name: str) -> None:
    parameters = inspect.signature(getattr(endoscope, name)).parameters.values()
    own = [one for one in parameters if one.kind is not one.VAR_KEYWORD]  # what goes on to the target is not ours
    assert len(own) <= MORE_PARAMETERS.get(name, 6)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'endoscope' has no attribute 'trase'"):
        endoscope.trase  # type: ignore[attr-defined]


def test_a_misspelt_name_gets_a_hint() -> None:
    result = run_python("import endoscope; endoscope.trase")
    assert "Did you mean: 'trace'?" in result.stderr


def test_star_import_is_possible() -> None:
    result = run_python("from endoscope import *; assert callable(trace) and callable(tracing)")
    assert result.returncode == 0, result.stderr


def test_a_second_import_of_the_modules_does_not_hide_the_functions() -> None:
    for target in endoscope._TARGETS.values():
        importlib.import_module(target.partition(":")[0])
    assert callable(endoscope.trace) and callable(endoscope.tracing) and callable(endoscope.validate)
