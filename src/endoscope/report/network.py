"""The dependency graph of a trial: graphs of all types laid over each other, what can be folded, what is open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from endoscope.errors import EndoscopeError
from endoscope.layout.folding import Folded, fold
from endoscope.layout.opening import opened_at_first
from endoscope.layout.recorded import Recorded, RecordedTree
from endoscope.query import bulk
from endoscope.query.recording import Recording

MOST_BOXES = 40
MOST_WITH_FINDINGS = 60  # where findings ask for more
_MOST_GRAPHS = 4  # of those that occur most often


def read_network(recording: Recording) -> RecordedTree | None:
    """What is known of the graph; None if no step has one."""
    counts = Counter(step.graph for step in recording.steps if step.graph)
    found = None
    graphs: list[dict[str, object]] = []
    for graph_hash, _ in counts.most_common(_MOST_GRAPHS):
        try:
            graph = bulk.graph(recording, graph_hash)
            found = RecordedTree(Recorded.merged([*graphs, graph]), _types(recording))
        except (EndoscopeError, KeyError, TypeError, ValueError, IndexError):
            continue  # damaged, or without a graph: the rest of the report does not need it
        graphs.append(graph)
    return found


def _types(recording: Recording) -> dict[str, str]:
    """Address of a module -> its class."""
    found = recording.modules.get("modules", [])
    entries = [entry for entry in found if isinstance(entry, dict) and {"address", "type"} <= set(entry)]
    return {str(entry.get("address", "")): str(entry.get("type", "")) for entry in entries}


def places(network: RecordedTree) -> dict[str, int]:
    """Name of a node -> its part; the first call, where calls are parts of their own."""
    found: dict[str, int] = {}
    for number, part in enumerate(network.tree.graph.parts):
        found.setdefault(part.name, number)
    return found


def folded_for(network: RecordedTree, flagged: Iterable[str]) -> Folded:
    """A picture that stays readable. `flagged` are names of nodes with findings, the most important first."""
    known = places(network)
    wanted = [known[name] for name in flagged if name in known]
    return fold(network.tree, opened_at_first(network.tree, MOST_BOXES, wanted, MOST_WITH_FINDINGS))
