"""`script.py:build`: a function of the user's own that returns a model and a batch for it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from endoscope.errors import BadArgument

_EXAMPLE = "Write a function without arguments that returns both: `def build(): return model, batch`."


def build(text: str) -> tuple[Any, Any]:
    """Run the script, and then its function."""
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not file or not name or not path.is_file():
        raise BadArgument(f"--deep {text}: there is no file {file or text!r}. Type it as script.py:build. {_EXAMPLE}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BadArgument(f"--deep {text}: {path} is no Python file. {_EXAMPLE}")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # as `python script.py` would do
    try:
        spec.loader.exec_module(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise BadArgument(f"--deep {text}: {path} has no function {name!r}. {_EXAMPLE}")
        found = function()
    except BadArgument:
        raise
    except Exception as error:
        raise BadArgument(f"--deep {text}: {path} failed with {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    if not isinstance(found, tuple) or len(found) != 2:
        raise BadArgument(f"--deep {text}: {name}() returned {type(found).__name__}, not (model, batch). {_EXAMPLE}")
    return found
