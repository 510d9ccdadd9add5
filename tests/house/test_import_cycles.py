"""No file needs, directly or through others, a file that needs it: each can be read after those that it imports.

All imports count: at the top, inside functions, and those for type checkers only, because a name in an annotation has
to be understood by whoever reads the file. Only the package's own `__init__` is left out; it repeats public names.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.house import imports
from tests.house.tree import PACKAGE, SRC, sources

Graph = Mapping[str, set[str]]


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def graph_of_files() -> Graph:
    """Module -> the modules of ours that it imports."""
    files = {module_of(path): path for path in sources() if path != PACKAGE / "__init__.py"}
    return {
        module: {target for found in imports.of_ours(path) for target in _files_behind(found.module, files)} - {module}
        for module, path in files.items()
    }


def _files_behind(name: str, files: Mapping[str, Path]) -> Iterator[str]:
    """`endoscope.schema.ops.Kind` stands in `endoscope.schema.ops`."""
    if name in files:
        yield name
    elif name.rpartition(".")[0] in files:
        yield name.rpartition(".")[0]


def cycles(graph: Graph) -> list[set[str]]:
    """Sets of modules each of which reaches all the others."""
    below = {module: _reached(graph, module) for module in graph}
    found: list[set[str]] = []
    for module in graph:
        if module in below[module] and not any(module in cycle for cycle in found):
            found.append({other for other in below[module] if module in below[other]})
    return found


def _reached(graph: Graph, start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def test_there_are_no_import_cycles() -> None:
    assert not [sorted(cycle) for cycle in cycles(graph_of_files())], "files that import each other"


def test_cycles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": set(), "f": {"g"}, "g": {"f"}}
    assert cycles(graph) == [{"a", "b", "c"}, {"f", "g"}]
    assert not cycles({"a": {"b"}, "b": {"c"}, "c": set()})


def test_the_graph_is_not_empty() -> None:
    graph = graph_of_files()
    assert "endoscope.schema.ops" in graph["endoscope.capture.record.records"]
    assert "endoscope.capture.patch.patch_list" in graph["endoscope.capture.patch.composites"]
