"""What a tensor of this process is to those of the same name in the other processes of the job.

    Relations.look(watches, names) ─► meshes, and along which of their dimensions the data is divided
    of_parameter, of_result        ─► the text in `keys.placement`; store/FORMAT.md says what is in it

A DTensor says it of itself. For any other tensor it follows from what stands around its module: parameters are equal
within DistributedDataParallel, and what is computed there is computed for other samples. Nothing else is guessed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from endoscope.capture.record.parts import is_sharded
from endoscope.recording.ranks.meshes import (
    Line,
    Mesh,
    mesh_of,
    mesh_of_group,
    root_of,
    sharding_lines,
    wrappers_of,
)
from endoscope.recording.ranks.shards import intervals_of
from endoscope.recording.ranks.specs import Spec, spec_of

REPLICATE, SHARD, BATCH, LOCAL = "replicate", "shard", "batch", "local"


class Root(Protocol):
    """A watched model."""

    @property
    def module(self) -> torch.nn.Module: ...


class Named(Protocol):
    """The modules and parameters of all watched models, as `Names` knows them."""

    version: int
    modules: dict[int, str]
    parameters: list[tuple[str, Tensor]]
    tensors: list[Tensor]
    positions: dict[int, int]

    @property
    def roots(self) -> Mapping[int, Root]: ...

    def all_modules(self) -> list[torch.nn.Module]: ...


class Relations:
    """Of one process to the others of its job."""

    def __init__(self, rank: int, changed: Callable[[list[Mesh]], None]) -> None:
        self._rank = rank
        self._changed = changed  # told when a mesh becomes known
        self.meshes: list[Mesh] = []
        self._seen = -1  # version of the names that was looked at
        self._roots: list[torch.nn.Module] = []
        self._data: dict[int, set[Line]] = {}  # id of a module -> along which its data is divided
        self._equal: dict[int, set[Line]] = {}  # id of a parameter -> along which its copies are kept equal
        self._copied: dict[int, set[Line]] = {}  # id of a module -> along which it is divided, but not its data
        self._modules: dict[str, int] = {}  # address -> id
        self._common: set[Line] = set()  # along which the data of all models is divided
        self._common_copies: set[Line] = set()
        self._texts: dict[Any, str] = {}

    # ---- what there is ---------------------------------------------------------------------------

    def look(self, names: Named) -> None:
        """Look again if a module was replaced since."""
        if names.version == self._seen:
            return
        self._seen = names.version
        self._data, self._equal, self._copied, self._texts = {}, {}, {}, {}
        modules = names.all_modules()
        self._modules = {address: identity for identity, address in names.modules.items()}
        meshes = [root_of(spec.mesh) for _, found in names.parameters if (spec := spec_of(found)) is not None]
        for mesh in sorted(dict.fromkeys(meshes), key=lambda mesh: -mesh.size()):
            self._add(mesh_of(mesh))
        for module in modules:
            if is_sharded(module):
                self._divide(module, set(sharding_lines(module)))
        for wrapper in wrappers_of(modules):
            self._add_wrapper(wrapper)
        for root in names.roots:
            self._add_copies(names, root)
        self._common = _in_common([self._data.get(identity, set()) for identity in names.roots])
        self._common_copies = _in_common([self._copied.get(identity, set()) for identity in names.roots])

    def _add_wrapper(self, wrapper: Any) -> None:
        ranks = torch.distributed.get_process_group_ranks(wrapper.process_group)
        line = frozenset(ranks)
        if not any(mesh.dims_of(line) is not None for mesh in self.meshes):
            self._add(mesh_of_group(ranks, self._rank))
        self._divide(wrapper, {line})
        ignored = set(getattr(wrapper, "parameters_to_ignore", ()))
        for name, parameter in wrapper.module.named_parameters():
            if name not in ignored:
                self._equal.setdefault(id(parameter), set()).add(line)

    def _add_copies(self, names: Named, root: int) -> None:
        """Tensor parallelism needs what is not divided to be equal wherever others of the model are divided."""
        module = names.roots[root].module
        found = [names.tensors[names.positions[id(p)]] for p in module.parameters() if id(p) in names.positions]
        specs = [spec for parameter in found if (spec := spec_of(parameter)) is not None]
        meshes = [mesh for mesh in map(mesh_of, dict.fromkeys(spec.mesh for spec in specs)) if mesh is not None]
        lines = {mesh.line([dim]) for mesh in meshes for dim in range(len(mesh.shape))}
        lines -= self._data.get(root, set())
        for parameter in found:  # where it is divided, it says so
            self._equal.setdefault(id(parameter), set()).update(lines)
        if lines:
            for part in module.modules():
                self._copied.setdefault(id(part), set()).update(lines)

    def _divide(self, module: torch.nn.Module, lines: set[Line]) -> None:
        for part in module.modules():
            self._data.setdefault(id(part), set()).update(lines)

    def _add(self, mesh: Mesh | None) -> None:
        if mesh is not None and mesh not in self.meshes:
            self.meshes.append(mesh)
            self._changed(self.meshes)

    # ---- what a tensor is ------------------------------------------------------------------------

    def of_parameter(self, parameter: Tensor, spec: Spec | None, *, is_local: bool = False) -> str:
        """Of a parameter, its update or its gradient; `is_local` before processes have reduced it."""
        data = self._equal.get(id(parameter), set())
        return self._text(spec, dict.fromkeys(data, LOCAL if is_local else REPLICATE))

    def of_result(self, address: str, spec: Spec | None, *, is_copy: bool = False) -> str:
        """Of what is computed in a module, or outside of all, or of its gradient; `is_copy`: from nothing divided."""
        identity = self._modules.get(address) if address else None
        data = self._common if identity is None else self._data.get(identity, set())
        words = dict.fromkeys(data, BATCH)
        if is_copy:
            copies = self._common_copies if identity is None else self._copied.get(identity, set())
            words = dict.fromkeys(copies, REPLICATE) | words
        return self._text(spec, words)

    @property
    def has_copies(self) -> bool:
        """Whether processes that see the same data have parts of one model."""
        return bool(self._copied)

    def is_divided(self, spec: Spec) -> bool:
        """Whether processes that see the same data have parts of it."""
        mesh = mesh_of(spec.mesh)
        lines = set().union(*self._copied.values())
        return mesh is None or any(
            not one.is_replicate() and mesh.line([dim]) in lines for dim, one in enumerate(spec.placements)
        )

    def of_buffer(self) -> str:
        """Each process has its own, and DistributedDataParallel makes them equal only now and then."""
        return self._text(None, {})

    def _text(self, spec: Spec | None, words: dict[Line, str]) -> str:
        key = spec, tuple(words.items())
        if key not in self._texts:
            self._texts[key] = self._worked_out(spec, words)
        return self._texts[key]

    def _worked_out(self, spec: Spec | None, words: dict[Line, str]) -> str:
        own = None if spec is None else mesh_of(spec.mesh)
        if spec is not None and own is not None and self._place_of(own) is None:
            self._add(mesh_of(root_of(spec.mesh)))
        number = self._best_mesh(own, words)
        if number is None:
            return ""
        mesh = self.meshes[number]
        over = [LOCAL] * len(mesh.shape)
        for line, word in words.items():
            for dim in mesh.dims_of(line) or ():
                over[dim] = word
        if spec is None or own is None:
            return _json({"mesh": number, "over": over})
        for dim, placement in enumerate(spec.placements):
            for place in mesh.dims_of(own.line([dim]), own.names[dim]) or ():
                over[place] = _word(placement)
        for dim, size in enumerate(mesh.shape):
            over[dim] = REPLICATE if size == 1 else over[dim]
        found: dict[str, Any] = {"mesh": number, "over": over}
        if SHARD in over:
            parts = intervals_of(spec.shape, own.shape, own.coordinate, spec.placements)
            found |= {"shape": list(spec.shape), "parts": parts}
        return _json(found)

    def _best_mesh(self, own: Mesh | None, words: Iterable[Line]) -> int | None:
        """The one in which it can be said; for a tensor of this process, one that the data is divided along."""
        if own is not None:
            return self._place_of(own)
        lines = list(words)
        fitting = [n for n, mesh in enumerate(self.meshes) if all(mesh.dims_of(line) is not None for line in lines)]
        return next(iter(fitting), None)

    def _place_of(self, own: Mesh) -> int | None:
        for number, mesh in enumerate(self.meshes):
            if all(mesh.dims_of(own.line([dim])) is not None for dim in range(len(own.shape))):
                return number
        return None


def _in_common(lines: list[set[Line]]) -> set[Line]:
    return set.intersection(*lines) if lines else set()


def _word(placement: Any) -> str:
    if placement.is_replicate():
        return REPLICATE
    if placement.is_partial():
        return f"partial:{placement.reduce_op}"
    return SHARD if hasattr(placement, "dim") else LOCAL


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, separators=(",", ":"))


def is_part(placement: str) -> bool:
    """Whether the numbers of a matrix cannot be had from this tensor alone."""
    return f'"{SHARD}"' in placement or '"partial:' in placement
