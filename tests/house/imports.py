"""Which modules of ours does a source file import? Read from its syntax, nothing is executed."""

import ast
from dataclasses import dataclass
from pathlib import Path

from tests.house.tree import PACKAGE, SRC


@dataclass(frozen=True)
class Import:
    """One import of something below `endoscope`, wherever in the file it stands."""

    module: str  # "endoscope.schema.ops", or "endoscope.trace" for a public name
    line: int


def of_ours(path: Path) -> list[Import]:
    """Every import of ours in a file: at the top, inside functions, under TYPE_CHECKING, by name."""
    return list_imports(path.read_text(encoding="utf-8"), package_of(path))


def list_imports(source: str, package: str) -> list[Import]:
    """The same for source text that belongs to the given package (which relative imports start from)."""
    found = []
    for node in ast.walk(ast.parse(source)):
        for module in _modules(node, package):
            if module.partition(".")[0] == "endoscope":
                found.append(Import(module, node.lineno))
    return found


def package_of(path: Path) -> str:
    """The dotted package that a file's relative imports start from."""
    return ".".join(path.relative_to(SRC).parent.parts)


def layer_of_file(path: Path) -> str:
    """The first folder below the package, or the file's own name: `capture`, `errors`, `__init__`."""
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def _modules(node: ast.AST, package: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = _absolute(node, package)
        return [f"{start}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call):
        return _imported_by_call(node)
    return []


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - (node.level - 1)]
    return ".".join([*base, *([node.module] if node.module else [])])


def _imported_by_call(node: ast.Call) -> list[str]:
    """`importlib.import_module("endoscope...")` is an import like any other."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ("import_module", "__import__") or not node.args:
        return []
    first = node.args[0]
    return [first.value] if isinstance(first, ast.Constant) and isinstance(first.value, str) else []
