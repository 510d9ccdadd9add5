"""rank.json: which process of a job a rank was, and where it stood in the meshes of its processes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from endoscope.store.paths import MEMBERSHIP
from endoscope.store.sealed import unseal


@dataclass(frozen=True, slots=True)
class Mesh:
    """Processes that work together, in as many dimensions as there are ways to divide the work."""

    names: tuple[str, ...]  # of the dimensions
    shape: tuple[int, ...]
    ranks: tuple[int, ...]  # in row-major order


@dataclass(frozen=True, slots=True)
class Membership:
    """What rank.json says."""

    rank: int
    world_size: int
    host: str = ""
    meshes: tuple[Mesh, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)


def read(folder: Path) -> tuple[Membership | None, str]:
    """(what rank.json of a rank's folder says, what is wrong with it); nothing in a trial of one process."""
    try:
        text = (folder / MEMBERSHIP).read_bytes()
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{MEMBERSHIP} cannot be read: {error.strerror or error}"
    found = unseal(text)
    if found is None:
        return None, f"{MEMBERSHIP} was changed or damaged after it was written"
    try:
        config = found.get("config", {})
        meshes = tuple(_mesh(mesh) for mesh in found.get("meshes", ()))
        made = Membership(
            _whole(found["rank"]), _whole(found["world_size"]), str(found.get("host", "")), meshes, dict(config)
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return None, f"{MEMBERSHIP} does not say which process it was: {error}"
    return made, ""


def _mesh(found: dict[str, Any]) -> Mesh:
    mesh = Mesh(
        tuple(str(name) for name in found["names"]),
        tuple(_whole(size) for size in found["shape"]),
        tuple(_whole(rank) for rank in found["ranks"]),
    )
    if math.prod(mesh.shape) != len(set(mesh.ranks)) or len(mesh.ranks) != len(set(mesh.ranks)):
        raise ValueError(f"a mesh of shape {mesh.shape} has not {len(mesh.ranks)} processes")
    return mesh


def _whole(number: Any) -> int:
    if type(number) is not int or not 0 <= number < 2**31:
        raise ValueError(f"{number!r} is no number of processes")
    return number
