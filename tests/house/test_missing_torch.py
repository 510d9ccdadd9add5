"""Without torch the package imports, and a name that needs torch says what to type."""

import pytest

from tests.house.tree import run_python

# None in sys.modules makes `import torch` raise ModuleNotFoundError.
WITHOUT_TORCH = "sys.modules['torch'] = None\nimport endoscope\n"


@pytest.mark.parametrize("name", ["trace", "tracing", "validate", "edits", "editing", "rerun", "compare"])
def test_the_error_says_what_to_type(name: str) -> None:
    result = run_python(WITHOUT_TORCH + f"endoscope.{name}")
    last_lines = result.stderr.strip().splitlines()[-2:]
    assert last_lines[0].startswith(
        f"endoscope.errors.MissingDependencyError: endoscope.{name} needs PyTorch, which is not installed"
    )
    assert last_lines[1] == 'Install it with:  pip install "endoscope[torch]"'


def test_the_error_is_ours_and_an_import_error() -> None:
    code = """
from endoscope.errors import EndoscopeError
try:
    from endoscope import trace
except ImportError as error:
    assert isinstance(error, EndoscopeError)
else:
    raise SystemExit("no error")
"""
    result = run_python(WITHOUT_TORCH + code)
    assert result.returncode == 0, result.stderr


def test_the_command_line_shows_the_message_without_a_traceback() -> None:
    result = run_python(WITHOUT_TORCH + "from endoscope.cli import main; sys.exit(main(['demo']))")
    assert result.returncode == 1
    assert result.stderr.startswith("endoscope: endoscope.Run needs PyTorch")
    assert "Traceback" not in result.stderr


def test_another_missing_module_is_not_blamed_on_torch() -> None:
    code = """
import endoscope
endoscope._TARGETS["trace"] = "endoscope.no_such_module:trace"
endoscope.trace
"""
    result = run_python(code)
    assert "ModuleNotFoundError: No module named 'endoscope.no_such_module'" in result.stderr
    assert "MissingDependencyError" not in result.stderr
