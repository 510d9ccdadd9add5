"""How the processes of a job are arranged, as far as it shows: in meshes of devices, and in groups that average.

parameters that are DTensors ─► their meshes, the largest first ─┐
modules of `fully_shard`     ─► along which dimensions          ─┼─► Mesh: names, shape, who stands where
DistributedDataParallel      ─► which processes                 ─┘      └► which dimensions divide the data
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

Line = frozenset[int]  # the processes along some dimensions of a mesh, with this one among them


class Mesh(NamedTuple):
    """Processes in rows and columns."""

    names: tuple[str, ...]
    shape: tuple[int, ...]
    ranks: tuple[int, ...]  # in row-major order
    coordinate: tuple[int, ...]  # of this process

    def line(self, dims: Iterable[int]) -> Line:
        """The processes along these dimensions."""
        place = [slice(None) if dim in dims else at for dim, at in enumerate(self.coordinate)]
        return frozenset(np.array(self.ranks).reshape(self.shape)[tuple(place)].ravel().tolist())

    def dims_of(self, line: Line, name: str = "") -> tuple[int, ...] | None:
        """The dimensions along which exactly these processes stand; None if there are none."""
        if len(line) == 1:
            return ()
        dims = [dim for dim, size in enumerate(self.shape) if size > 1]
        for count in range(1, len(dims) + 1):
            for some in sorted(itertools.combinations(dims, count), key=lambda some: self.names[some[0]] != name):
                if self.line(some) == line:
                    return some
        return None

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) for name, value in self._asdict().items()}


def mesh_of(device_mesh: Any) -> Mesh | None:
    """A mesh of torch; None if this process is not in it."""
    coordinate = device_mesh.get_coordinate()
    if coordinate is None:
        return None
    ranks = device_mesh.mesh
    names = device_mesh.mesh_dim_names or [f"dim {n}" for n in range(ranks.dim())]
    return Mesh(tuple(names), tuple(ranks.shape), tuple(ranks.flatten().tolist()), tuple(coordinate))


def mesh_of_group(ranks: Sequence[int], rank: int) -> Mesh:
    """Processes that are only copies of each other."""
    return Mesh(("data",), (len(ranks),), tuple(ranks), (ranks.index(rank),))


def root_of(device_mesh: Any) -> Any:
    """The mesh of which it is a part; where torch does not tell, it stands for itself."""
    find = getattr(device_mesh, "_get_root_mesh", None)
    return device_mesh if find is None else find()


def sharding_lines(module: Any) -> Iterator[Line]:
    """Along which `fully_shard` divides the data of a module."""
    state = module._get_fsdp_state()
    groups = getattr(state, "_fsdp_param_groups", None)
    for group in [state._fsdp_param_group] if groups is None else groups:
        mesh = None if group is None else mesh_of(group.mesh_info.mesh)
        if mesh is not None:
            info = group.mesh_info
            dims = [getattr(info, name, None) for name in ("shard_mesh_dim", "replicate_mesh_dim")]
            yield from (mesh.line([dim]) for dim in dims if isinstance(dim, int))


def wrappers_of(modules: Iterable[torch.nn.Module]) -> list[DistributedDataParallel]:
    """The DistributedDataParallel around or in these modules. It looks through all objects of the process."""
    ids = {id(module) for module in modules}
    found = [one for one in gc.get_objects() if issubclass(type(one), DistributedDataParallel)]
    return [one for one in found if id(one) in ids or id(one.module) in ids]
