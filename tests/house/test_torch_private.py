"""Names that are private in torch stand in one file: whoever makes Endoscope run with another torch looks there."""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.house.tree import PACKAGE, relative, run_python, sources

HOME = PACKAGE / "capture" / "patch" / "torch_private.py"
LAYERS_WITHOUT_IT = {"stats"}  # it may not import `capture`; what it uses stands in the docstring of the file
ATTRIBUTES = re.compile(r"`(_[a-z]\w*)`")

_PATH = re.compile(r"torch(\.\w+)+")


def private_names(source: str) -> list[str]:
    """Every name in source text that is private in torch, as `torch._C.x`; text that is one dotted name counts."""
    return [name for name in _names_of_torch(ast.parse(source)) if _is_private(name)]


def _names_of_torch(tree: ast.AST) -> Iterator[str]:
    """The names as they are written, whole and outermost: of `torch._C.x` not also `torch._C`."""
    local = {"torch": "torch"}  # what a name of the file stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_of_torch(alias.name):
                    yield alias.name
                    if alias.asname:
                        local[alias.asname] = alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level and _is_of_torch(node.module or ""):
            for alias in node.names:
                yield f"{node.module}.{alias.name}"
                local[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner:
            start, _, rest = ast.unparse(node).partition(".")
            # Below a class (`Tensor._version`) stand attributes; only modules of torch are followed.
            if start in local and local[start].rpartition(".")[2].islower():
                yield f"{local[start]}.{rest}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATH.fullmatch(node.value):
            yield node.value


def _is_of_torch(module: str) -> bool:
    return module.partition(".")[0] == "torch"


def _is_private(name: str) -> bool:
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def test_private_names_of_torch_stand_in_one_file() -> None:
    wrong = [
        f"{relative(path)}: {name}"
        for path in sources()
        if path != HOME and path.relative_to(PACKAGE).parts[0] not in LAYERS_WITHOUT_IT
        for name in private_names(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, f"names that belong into {relative(HOME)}:\n" + "\n".join(wrong)


def test_what_stats_uses_is_told_there() -> None:
    told = ast.get_docstring(ast.parse(HOME.read_text(encoding="utf-8"))) or ""
    for path in sources():
        layer, *rest = path.relative_to(PACKAGE).parts
        for name in private_names(path.read_text(encoding="utf-8")) if layer in LAYERS_WITHOUT_IT else ():
            assert f"`{name}`" in told
            assert f"`{'/'.join([layer, *rest])}`" in told


def test_every_name_says_what_it_is_for() -> None:
    source = HOME.read_text(encoding="utf-8")
    lines = source.splitlines()
    for name, line in _defined(source):
        assert lines[line - 2].startswith("#:"), f"{name} has no comment above it"


def test_every_name_is_used() -> None:
    others = "\n".join(path.read_text(encoding="utf-8") for path in sources() if path != HOME)
    unused = {name for name, _ in _defined(HOME.read_text(encoding="utf-8")) if not re.search(rf"\b{name}\b", others)}
    assert not unused


def _defined(source: str) -> list[tuple[str, int]]:
    """The names that other files may import, with their lines; functions and classes have docstrings."""
    found = []
    for node in ast.parse(source).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found += [(target.id, node.lineno) for target in targets if isinstance(target, ast.Name)]
    return [(name, line) for name, line in found if not name.startswith("_")]


def test_the_compiler_is_not_loaded() -> None:
    """It takes most of a second, and is loaded by whoever compiles something."""
    result = run_python("import endoscope.capture.patch.torch_private\nassert 'torch._dynamo' not in sys.modules")
    assert result.returncode == 0, result.stderr


def test_attributes_that_are_told_are_read_somewhere() -> None:
    told = ATTRIBUTES.findall(ast.get_docstring(ast.parse(HOME.read_text(encoding="utf-8"))) or "")
    others = "\n".join(path.read_text(encoding="utf-8") for path in sources() if path != HOME)
    assert told
    assert not [name for name in told if not re.search(rf"\b{name}\b", others)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import torch\ntorch._C._x()", ["torch._C._x"]),
        ("import torch\ntorch._C.DisableTorchFunction()", ["torch._C.DisableTorchFunction"]),
        ("import torch\ntorch.nn.modules.batchnorm._BatchNorm", ["torch.nn.modules.batchnorm._BatchNorm"]),
        ("import torch._dynamo", ["torch._dynamo"]),
        ("from torch._ops import OpOverload", ["torch._ops.OpOverload"]),
        ("def f():\n    from torch.overrides import _x", ["torch.overrides._x"]),
        ("from torch.nn.utils import clip_grad\nclip_grad._x", ["torch.nn.utils.clip_grad._x"]),
        ("import torch.nn.modules.module as m\nm._x = 1", ["torch.nn.modules.module._x"]),
        ("importlib.import_module('torch._functorch.vmap')", ["torch._functorch.vmap"]),
        ("import torch\ntorch.__version__, torch.nn.functional.relu", []),
        ("'a text about torch._C'", []),
        ("tensor._version, self._x, other.torch._x", []),
    ],
)
def test_every_way_to_a_private_name_is_seen(source: str, expected: list[str]) -> None:
    assert private_names(source) == expected
