"""What a case is, the two lists that all cases are in, and the rule that splits them into halves."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TrainBug = Callable[[Any, bool], bool]
TrainHealthy = Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Bug:
    """One bug. `train(run, fixed)` trains with it or without it, and says whether the training went well."""

    id: str
    wrong: str  # what is wrong, in one sentence
    source: str  # where the bug was described
    places: tuple[str, ...]  # modules, tensors or metrics that a good diagnosis points at
    words: str  # a regular expression of what names the cause
    stops: bool  # whether the faulty training ends with an exception of its own
    train: TrainBug


@dataclass(frozen=True, slots=True)
class Healthy:
    """A training with nothing wrong in it. `train(run)` says whether it went well."""

    id: str
    kind: str
    train: TrainHealthy


BUGS: dict[str, Bug] = {}
HEALTHY: dict[str, Healthy] = {}


def bug(
    id: str, *, wrong: str, source: str, places: str = "", words: str, stops: bool = False
) -> Callable[[TrainBug], TrainBug]:
    """Put a bug on the list; `places` are separated by commas."""

    def register(train: TrainBug) -> TrainBug:
        assert id not in BUGS and id not in HEALTHY, id
        BUGS[id] = Bug(
            id, wrong, source, tuple(place.strip() for place in places.split(",") if place), words, stops, train
        )
        return train

    return register


def healthy(id: str, *, kind: str) -> Callable[[TrainHealthy], TrainHealthy]:
    """Put a healthy training on the list."""

    def register(train: TrainHealthy) -> TrainHealthy:
        assert id not in BUGS and id not in HEALTHY, id
        HEALTHY[id] = Healthy(id, kind, train)
        return train

    return register


def half_of(id: str) -> str:
    """`learning` or `reporting`: the last bit of a hash of the name, which nobody can tune.

    Cases that were added for learning only say so with their name, and are `practice`.
    """
    if id.startswith("practice-"):
        return "practice"
    return "reporting" if hashlib.sha256(id.encode()).digest()[-1] % 2 else "learning"
