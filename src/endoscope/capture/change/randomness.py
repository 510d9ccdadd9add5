"""The states of all random generators, of torch on every device, Python and numpy: keep, compare, put back, seed."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from endoscope.capture.data.nodes import RandomState
from endoscope.capture.patch.torch_private import DisableTorchFunction, out_of_sight
from endoscope.errors import BadArgument

States = dict[str, Any]  # "cpu", "cuda:0", "python", "numpy" -> state
_DEVICES = ("cuda", "xpu", "mps")


def random_states() -> States:
    states: States = {"cpu": torch.get_rng_state(), "python": random.getstate()}
    for kind, place in _devices():
        states[place] = _module(kind).get_rng_state(*_number(place))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        states["numpy"] = numpy.random.get_state()
    return states


def set_random_states(states: Mapping[str, Any]) -> None:
    for name, state in states.items():
        if name == "cpu":
            torch.set_rng_state(state)
        elif name == "python":
            random.setstate(state)
        elif name == "numpy":
            sys.modules["numpy"].random.set_state(state)
        else:
            _module(name.partition(":")[0]).set_rng_state(state, *_number(name))


def same_random_states(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return all(same_state(a[name], b[name]) for name in a.keys() & b.keys())


def same_state(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        with out_of_sight(), DisableTorchFunction():  # the modes of the user need not know that we look
            return torch.equal(a, b)
    return all(bool((x == y).all()) if hasattr(x, "all") else x == y for x, y in zip(a, b, strict=True))


def kept_states(
    before: States, after: States, generators: Mapping[int, tuple[torch.Generator, torch.Tensor]]
) -> tuple[RandomState, ...]:
    """Every generator with its state before, and whether it was drawn from; `generators` are the user's own."""
    known = [
        RandomState(name, state, name in after and not same_state(state, after[name])) for name, state in before.items()
    ]
    own = [RandomState(f"generator {n}", state, True) for n, (_, state) in enumerate(generators.values(), 1)]
    return (*known, *own)


def check_seed(seed: Any) -> None:
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool) or not -(2**63) <= seed < 2**63):
        raise BadArgument(f"seed={seed!r} is no seed: use a whole number of at most 63 bits, such as seed=0, or None.")


@contextlib.contextmanager
def seeded(seed: int | None) -> Iterator[None]:
    """Seed torch, Python and numpy meanwhile, and put their states back; None changes nothing."""
    check_seed(seed)
    if seed is None:
        yield
        return
    before = random_states()
    try:
        torch.manual_seed(seed)
        random.seed(seed)
        if "numpy" in before:
            sys.modules["numpy"].random.seed(seed % 2**32)
        yield
    finally:
        set_random_states(before)


def _devices() -> Iterator[tuple[str, str]]:
    """Kind and name of every device whose generator exists by now; asking starts no device."""
    for kind in _DEVICES:
        module = getattr(torch, kind, None)
        if module is None or not getattr(module, "is_initialized", module.is_available)():
            continue
        for number in range(module.device_count()):
            yield kind, kind if kind == "mps" else f"{kind}:{number}"


def _module(kind: str) -> Any:
    return getattr(torch, kind)


def _number(place: str) -> tuple[int, ...]:
    return (int(place.partition(":")[2]),) if ":" in place else ()
