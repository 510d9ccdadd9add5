"""`endoscope.load(path)`: a trace from its file, without torch and without the model.

Tables and header are read at once, values when they are asked for. What was told by code and modules is told by the
file; functions themselves are not in it, and `again.py` gives back what needs them.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
from collections.abc import Iterator, Set
from functools import cache
from pathlib import Path
from typing import Any

from endoscope.analysis.branching.branches import Decision
from endoscope.capture.data.arguments import TENSOR, Placeholder
from endoscope.capture.data.calls import Call, Calls, ModuleName
from endoscope.capture.data.functions import FunctionFacts, Role
from endoscope.capture.data.nodes import NO_POSITION, Applied, Departure, Node, Position, RandomState, Source, slots_of
from endoscope.capture.data.record import ModuleFacts, Record
from endoscope.capture.data.words import Stored
from endoscope.capture.file.archive import FORMAT, Archive
from endoscope.capture.file.columns import TABLES, from_arrow, to_read
from endoscope.capture.file.decisions import decode_decision
from endoscope.capture.file.plain import Decoder
from endoscope.capture.file.values import Asked, FileValues, Slots, Tensors, read, special
from endoscope.capture.views.result import Trace
from endoscope.errors import CannotReplay, EndoscopeError, NotATrace
from endoscope.schema.ops import Kind, Notice, SourceLine

_DOES_NOT_FIT = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError)


def load(path: str | os.PathLike[str], *, model: Any = None) -> Trace:
    """A trace that was saved: all that it knows, without torch, its values read when they are asked for.

    A file holds no functions. With the `model` that was traced (or the function), `trace.rerun()`, `trace.validate()`
    and whatever else calls functions again run it once more on the inputs that the file holds.
    """
    archive = Archive(Path(path).expanduser())
    try:
        with _all_stays():
            return _File(archive).trace(model)
    except EndoscopeError:
        raise
    except _DOES_NOT_FIT as error:
        raise _misfit(archive, error) from None


@contextlib.contextmanager
def _all_stays() -> Iterator[None]:
    """Hundreds of thousands of objects are made and none is garbage: looking for it would take as long as the rest."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _misfit(archive: Archive, error: Exception) -> NotATrace:
    return archive.damaged(f"its parts do not fit together ({type(error).__name__}: {error})")


class FileRecord(Record):
    """What was written down, from a file."""

    def __init__(self, path: Path, model: Any, origin: Any, constants_that_learn: Set[int]) -> None:
        self.file: Path = path
        self.model = model
        self.origin = origin  # arguments and keyword arguments; None if the file has none
        self._learned = constants_that_learn
        self._again: Any = None

    def learned(self) -> Set[int]:
        return self._learned

    def live(self, trace: Any) -> Any:
        if self.model is None:
            raise CannotReplay(
                f"This trace of {trace.name} was loaded from {self.file}, and a file holds no functions or modules. "
                f"Give it what was traced: endoscope.load({str(self.file)!r}, model=model)."
            )
        if self._again is None:
            from endoscope.capture.file.again import run_again

            self._again = run_again(trace, self.model, self.origin)
        return self._again


class FileCalls(Calls):
    """Calls of modules that are known by their names only."""

    def __init__(self, entries: list[Call], modules: list[ModuleName], other_names: dict[str, str]) -> None:
        super().__init__()
        self.entries = entries
        self.addresses = {id(module): (module.address, module) for module in modules}
        self._other_names = other_names

    def other_names(self) -> dict[str, str]:
        return self._other_names


class _File:
    """The parts of one file, and how they become a trace."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.header = _header(archive)
        self.words = Decoder(self.header["itemsizes"], self._tensor)
        self.lines = [SourceLine(str(file), int(line), str(name)) for file, line, name in self.header["lines"]]
        self.tensors = Tensors(archive, from_arrow(archive, "tensors")["crc"])

    def trace(self, model: Any) -> Trace:
        header, nodes = self.header, from_arrow(self.archive, "nodes")
        slots = self._slots()
        origin = header["origin"]
        if origin is not None:
            origin = lambda: [self._decode(header["origin"][name]) for name in ("args", "kwargs")]  # noqa: E731
        learned = frozenset(number for number, learns in enumerate(nodes["learned"]) if learns)
        record = FileRecord(self.archive.path, model, origin, learned)
        record.full, record.save_text = bool(header["full"]), str(header["save"])
        self._fill(record, nodes)
        record.slot_node = slots.node
        record.calls = self._calls()
        _check(self.archive, record)
        states = {n: state for n, state in enumerate(nodes["random_state"]) if state is not None}
        asked = Asked(record.save_text, bool(header["gradients"]), states)
        values = FileValues(slots, self.tensors, self.words, asked)
        found = Trace(record, values, str(header["name"]))
        found.seed, found.finished, found.learned = header["seed"], bool(header["finished"]), learned
        for name, seconds in header["timing"].items():
            setattr(found.timing, name, float(seconds))
        found.random = tuple(RandomState(str(g), self.words.decode(state), bool(u)) for g, state, u in header["random"])
        found.stopped_after = header["stopped_after"]
        result = header["result"]
        found.result_from(cache(lambda: self._decode(result)))
        found.sealed = True
        return found

    def _slots(self) -> Slots:
        columns = from_arrow(self.archive, "slots")
        for number in [*columns["tensor"], *columns["gradient"]]:
            if number is not None:
                self.tensors.check(number)
        columns["shape"] = list(map(tuple, columns["shape"]))
        return Slots(**columns)

    def _fill(self, record: FileRecord, columns: dict[str, list[Any]]) -> None:
        header, lines = self.header, self.lines
        functions = [FunctionFacts(f[0], f[1], Role(f[2]), None, *map(bool, f[3:])) for f in header["functions"]]
        arguments = cache(self._arguments)
        names = cache(lambda name: Stored(name, "function"))
        record.nodes, record.sources, record.sequences, record.rng = [], {}, set(), {}
        record.hidden_reads, record.edited = {}, {}
        kept: set[int] = set()
        statements: dict[int, int] = {}
        for number, row in enumerate(zip(*(columns[name] for name in TABLES["nodes"]), strict=True)):
            (
                function, func, given, reads, hidden, slot, outputs, written, started, ended, line, call, autocast,
                grad, kind, name, sequence, is_kept, _, statement, _, edits,
            ) = row  # fmt: skip
            args, kwargs = arguments(given)
            record.nodes.append(
                Node(
                    functions[function], None if func is None else names(func), args, kwargs,
                    list(map(to_read, reads)), slot, outputs, written, started, ended,
                    None if line < 0 else lines[line], -1, call,
                    None if autocast is None else self.words.decode(json.loads(autocast)), grad,
                )
            )  # fmt: skip
            if kind is not None:
                record.sources[number] = Source(Kind(kind), name, call)
            if sequence:
                record.sequences.add(number)
            if is_kept:
                kept.add(number)
            if hidden is not None:
                record.hidden_reads[number] = list(map(to_read, hidden))
            if edits is not None:
                record.edited[number] = [Applied(Stored(edit, "Edit"), "") for edit in edits]
            if statement is not None:
                statements[number] = statement
        record.chosen = None if len(kept) == len(record.nodes) else kept
        record.statements = statements
        record.departures = [self._departure(one) for one in header["departures"]]
        record.notices = [Notice(str(k), str(m), None if n < 0 else lines[n]) for k, m, n in header["notices"]]
        record.decisions = [decode_decision(found) for found in header["decisions"]]
        if not all(isinstance(found, Decision) for found in record.decisions):
            raise ValueError("something else stands among the decisions")
        record.modules = [ModuleFacts(a, t, tuple(c), p, q, b, on) for a, t, c, p, q, b, on in header["modules"]]

    def _decode(self, data: Any) -> Any:
        """When it is asked for, which may be much later."""
        try:
            return self.words.decode(data)
        except _DOES_NOT_FIT as error:
            raise _misfit(self.archive, error) from None

    def _arguments(self, text: str) -> tuple[Any, Any]:
        args, kwargs = self.words.decode(json.loads(text))
        return args, kwargs

    def _tensor(self, data: dict[str, Any]) -> Any:
        if "tensor" in data:
            return TENSOR if data["tensor"] is None else Placeholder(tuple(data["tensor"]))
        if "special" in data:
            return special(self.tensors, data["special"], self.words)
        number = data["array"] if "array" in data else data["value"]
        words = self.words if "value" in data else _WITHOUT_TORCH
        return read(self.tensors, number, words, data["dtype"], tuple(data["shape"]), data["strides"])

    def _departure(self, one: dict[str, Any]) -> Departure:
        position = NO_POSITION if one["line"] < 0 else Position(self.lines[one["line"]], -1)
        reads, value = tuple(map(to_read, one["reads"])), self.words.decode(one["value"])
        return Departure(one["name"], reads, position, one["call"], one["control"], one["node"], value, ())

    def _calls(self) -> FileCalls:
        columns = from_arrow(self.archive, "calls")
        modules = [ModuleName(str(facts[0]), str(facts[1])) for facts in self.header["modules"]]
        entries = []
        for row in zip(*(columns[name] for name in TABLES["calls"]), strict=True):
            module, function, parent, pass_, first, last, entered, returned, root, line = row
            position = NO_POSITION if line < 0 else Position(self.lines[line], -1)
            named = str(function) if module is None else modules[module]
            returned = list(map(to_read, returned))
            entries.append(Call(named, parent, pass_, first, entered, root, position, last, returned))
        return FileCalls(entries, modules, self.header["other_names"])


_WITHOUT_TORCH = Decoder.without_torch()


def _header(archive: Archive) -> dict[str, Any]:
    if "header.json" not in archive:
        raise archive.damaged("it is a zip file, but none that trace.save() has written: header.json is missing")
    header = json.loads(archive.read("header.json"))
    format_ = header["format"]
    if format_ != FORMAT:
        raise NotATrace(
            f"{archive.path} has the format {format_!r}, and this version of Endoscope reads the format {FORMAT}. "
            "It was written by a newer version: pip install --upgrade endoscope."
        )
    return dict(header)


def _check(archive: Archive, record: Record) -> None:
    """Numbers must lead somewhere: a file that was written wrongly is said to be so here, not where it is used."""
    nodes, slots, calls = len(record.nodes), len(record.slot_node), len(record.calls.entries)
    reads = [slot for node in record.nodes for read in node.reads for slot in slots_of(read)]
    reads += [slot for hidden in record.hidden_reads.values() for read in hidden for slot in slots_of(read)]
    reads += [
        slot
        for call in record.calls.entries
        for read in (*call.returned, tuple(call.entered))
        for slot in slots_of(read)
    ]
    reads += [slot for left in record.departures for read in left.reads for slot in slots_of(read)]
    wrong = (
        any(not 0 <= slot < slots for slot in reads)
        or any(not 0 <= node < nodes for node in record.slot_node)
        or any(not (0 <= n.results.start <= n.results.stop <= slots) for n in record.nodes)
        or any(record.nodes[number].outputs != 1 for number in record.sources)
        or any(not -1 <= node.call < calls for node in record.nodes)
        or any(not -1 <= call.parent < number for number, call in enumerate(record.calls.entries))
        or any(record.slot_node[s] >= n for n, node in enumerate(record.nodes) for r in node.reads for s in slots_of(r))
    )
    if wrong:
        raise archive.damaged("its tables refer to operations that are not there")
