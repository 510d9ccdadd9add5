"""Layers point one way: who may import whom, wherever in the file the import stands.

Imports inside functions and imports under `if TYPE_CHECKING:` count like all others. A name that appears only
in an annotation still has to be understood by whoever reads the file, so it is a dependency of the layer. The
one exception is the package's own `__init__`, whose TYPE_CHECKING block repeats the public names for editors.
"""

from pathlib import Path

import pytest

from tests.house import imports
from tests.house.tree import relative, sources

# ARCHITECTURE.md explains the picture behind this table. `errors` is allowed everywhere.
MAY_IMPORT = {
    "__main__": {"cli"},
    "errors": set(),
    "schema": set(),
    "analysis": {"schema", "layout"},
    "layout": set(),
    "markup": set(),
    "store": {"schema"},
    "capture": {"schema", "analysis", "store", "markup"},
    "replay": {"schema", "analysis", "capture", "markup"},
    "stats": {"schema"},
    "recording": {"schema", "analysis", "capture", "replay", "stats", "store", "markup"},
    "query": {"schema", "analysis", "store", "markup"},
    "findings": {"schema", "analysis", "store", "query", "replay", "markup"},
    "report": {"schema", "analysis", "layout", "store", "query", "findings", "markup"},
    "server": {"schema", "layout", "query", "findings"},
}

# These use Endoscope as a user does, through its public names. `cli` may reach anything, inside a command.
USES_PUBLIC_NAMES = {"cli", "demo", "integrations"}
MAY_IMPORT_ANYTHING = {"cli"}

# A method that is shorthand for a public function of a higher layer (`trace.validate()`) goes through the
# public name, inside the method. Each such door is listed here: file -> public names.
# A run that ends says what looks wrong in what it has recorded.
SHORTHANDS: dict[str, set[str]] = {
    "src/endoscope/capture/views/result.py": {"rerun", "show", "validate"},
    "src/endoscope/recording/telling.py": {"diagnose"},
    "src/endoscope/server/launch.py": {"load"},
}


def violations(path: Path) -> list[str]:
    layer = imports.layer_of_file(path)
    if layer == "__init__":
        return []
    where = relative(path)
    return [
        f"{where}:{found.line} ({layer}) imports {found.module}"
        for found in imports.of_ours(path)
        if not allowed(layer, found.module, SHORTHANDS.get(where, set()))
    ]


def allowed(layer: str, module: str, shorthands: set[str]) -> bool:
    target = (module.split(".") + [""])[1]  # "endoscope.schema.ops" -> "schema", "endoscope" -> ""
    if target in {layer, "errors", "__version__"} or layer in MAY_IMPORT_ANYTHING:
        return True
    if target in MAY_IMPORT or target in USES_PUBLIC_NAMES:
        return target in MAY_IMPORT.get(layer, set())
    # What is left is the package itself or one of its public names.
    return layer in USES_PUBLIC_NAMES or target in shorthands or (target == "" and bool(shorthands))


def test_every_layer_is_in_the_table() -> None:
    known = set(MAY_IMPORT) | USES_PUBLIC_NAMES | {"__init__"}
    assert {imports.layer_of_file(path) for path in sources()} <= known


def test_layers_point_one_way() -> None:
    wrong = [line for path in sources() for line in violations(path)]
    assert not wrong, "imports against the table in this file:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("layer", "module", "verdict"),
    [
        ("schema", "endoscope.errors", True),
        ("schema", "endoscope.schema.ids", True),
        ("schema", "endoscope.analysis.recurrence.naming", False),
        ("capture", "endoscope.analysis", True),
        ("capture", "endoscope.replay.validate", False),
        ("capture", "endoscope.trace", False),
        ("query", "endoscope.capture", False),
        ("cli", "endoscope.capture", True),
        ("integrations", "endoscope.trace", True),
        ("integrations", "endoscope.capture", False),
        ("capture", "endoscope", False),
    ],
)
def test_the_table_is_read_as_written(layer: str, module: str, verdict: bool) -> None:
    assert allowed(layer, module, shorthands=set()) is verdict


def test_a_shorthand_opens_one_door() -> None:
    assert allowed("capture", "endoscope", shorthands={"validate"})
    assert allowed("capture", "endoscope.validate", shorthands={"validate"})
    assert not allowed("capture", "endoscope.replay", shorthands={"validate"})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import endoscope.schema.ops", "endoscope.schema.ops"),
        ("from endoscope import schema", "endoscope.schema"),
        ("from endoscope.schema import ops as o", "endoscope.schema.ops"),
        ("def f():\n    from endoscope.replay import validate", "endoscope.replay.validate"),
        ("if TYPE_CHECKING:\n    from endoscope.replay import validate", "endoscope.replay.validate"),
        ("from . import mode", "endoscope.capture.mode"),
        ("from .mode import Mode", "endoscope.capture.mode.Mode"),
        ("from ..schema import ops", "endoscope.schema.ops"),
        ("importlib.import_module('endoscope.server')", "endoscope.server"),
    ],
)
def test_every_way_to_import_is_seen(source: str, expected: str) -> None:
    assert [found.module for found in imports.list_imports(source, "endoscope.capture")] == [expected]


def test_imports_of_others_are_not_ours() -> None:
    source = "import torch\nfrom endoscopes import x\nimport importlib"
    assert imports.list_imports(source, "endoscope.capture") == []
