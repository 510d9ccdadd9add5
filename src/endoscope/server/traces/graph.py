"""The graph of a trace for the page, as columns, and the questions about it that the page asks."""

from __future__ import annotations

from endoscope.errors import EndoscopeError
from endoscope.server import wire
from endoscope.server.traces.shown import ShownTrace


def graph_of(shown: ShownTrace, rolled: bool) -> wire.TraceGraph:
    """All nodes, their boxes and edges."""
    read, traced = shown.read, shown.tree(rolled)
    tree = traced.tree
    sources: dict[str, int] = {}
    lines = [op.source for op in read.ops]
    source = [-1 if line is None else sources.setdefault(f"{line.file}:{line.line}", len(sources)) for line in lines]
    # Modules stand after the one around them; the whole, number 0, is no box.
    modules = [
        wire.TraceModule(
            address=module.address,
            type=traced.module_type(module.number),
            label=traced.module_label(module.number),
            parent=module.parent - 1,
        )
        for module in tree.modules[1:]
    ]
    return wire.TraceGraph(
        rolled=rolled,
        node=[node.layer if rolled else node.label for node in read.nodes],
        label=[node.label for node in read.nodes],
        passNumber=[int(op.pass_) if rolled else 1 for op in read.ops],
        kind=[node.kind for node in read.nodes],
        type=[str(op.type) for op in read.ops],
        shape=[list(own[0]) if len(own) == 1 else None for own in read.shapes],
        source=source,
        sources=list(sources),
        module=[tree.home[traced.part_of[number]] - 1 for number in range(len(read.nodes))],
        modules=modules,
        edges=[end for edge in read.edges for end in edge],
    )


def selected(shown: ShownTrace, pattern: str) -> wire.TraceFound:
    """What a pattern selects, or a sentence why it selects nothing."""
    with shown.lock:
        try:
            found = [str(op.label) for op in shown.trace.graph.select(pattern)]
        except EndoscopeError as error:
            return wire.TraceFound(labels=[], sentence=str(error))
    return wire.TraceFound(labels=found, sentence=_count(len(found), "is", "are") + " selected.")


def between(shown: ShownTrace, start: str, end: str) -> wire.TraceFound:
    """All operations on paths from one operation down to another; asked in either order."""
    with shown.lock:
        graph = shown.trace.graph
        if graph.distance(start, end) is None:
            start, end = end, start
        if graph.distance(start, end) is None:
            sentence = f"No path leads from {start} to {end}, nor the other way: neither depends on the other."
            return wire.TraceFound(labels=[], sentence=sentence)
        below = {op.label for op in graph.descendants(start)} | {start}
        above = {op.label for op in graph.ancestors(end)} | {end}
        on_paths = [node.label for node in shown.read.nodes if node.label in below and node.label in above]
        paths, shortest = graph.path_count(start, end), graph.distance(start, end)
    count = f"{paths:,}" if paths < 10**9 else f"{float(paths):.1e}" if paths < 10**300 else "more than 10^300"
    several = f"{count} path{'s' * (paths != 1)} from {start} down to {end}, the shortest of {shortest} steps"
    return wire.TraceFound(labels=on_paths, sentence=f"{several}; {_count(len(on_paths), 'lies', 'lie')} on them.")


def _count(number: int, one: str, several: str) -> str:
    return f"{number:,} node{'s' * (number != 1)} {one if number == 1 else several}"
