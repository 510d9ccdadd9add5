"""Random programs with loops inside loops are rolled up to the loops they were written with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from endoscope.analysis.recurrence import find_recurrence
from tests.analysis.recurrence_programs import Program


@dataclass(frozen=True)
class Again:
    """A loop of the source."""

    times: int
    body: tuple[Part, ...]


Part = bool | Again  # a statement (with parameters or without), or a loop

STATEMENTS = st.sampled_from([False, False, True])
BODIES = st.recursive(
    st.lists(STATEMENTS, min_size=1, max_size=3).map(tuple),
    lambda inner: st.lists(STATEMENTS | st.builds(Again, st.integers(2, 3), inner), min_size=1, max_size=3).map(tuple),
    max_leaves=8,
)


@dataclass(frozen=True)
class Named:
    """The same with a name for each statement."""

    times: int
    body: tuple[tuple[str, bool] | Named, ...]

    def names(self) -> frozenset[str]:
        return frozenset().union(*[p.names() if isinstance(p, Named) else {p[0]} for p in self.body])

    def run(self, program: Program, entered: Counter[str]) -> None:
        for _ in range(self.times):
            for part in self.body:
                if isinstance(part, Named):
                    part.run(program, entered)
                else:
                    entered[part[0]] += 1
                    program.do(part[0], parameters=[f"weight of {part[0]}"] if part[1] else [])

    def loops(self) -> list[tuple[frozenset[str], int]]:
        """Names and passes; a loop of nothing but a loop is one loop."""
        if len(self.body) == 1 and isinstance(self.body[0], Named):
            only = self.body[0]
            return Named(self.times * only.times, only.body).loops()
        inner = [loop for part in self.body if isinstance(part, Named) for loop in part.loops()]
        return [*([(self.names(), self.times)] if self.times > 1 else []), *inner]


def named(body: tuple[Part, ...], times: int, numbers: count[int]) -> Named:
    parts = [
        named(part.body, part.times, numbers) if isinstance(part, Again) else (f"f{next(numbers)}", part)
        for part in body
    ]
    return Named(times, tuple(parts))


@settings(max_examples=300, deadline=None)
@given(BODIES)
def test_loops_come_out_as_they_were_written(body: tuple[Part, ...]) -> None:
    source = named(body, 1, count())
    program, ran = Program(), Counter[str]()
    source.run(program, ran)
    recurrence = find_recurrence(program.facts())
    layers: dict[str, set[object]] = {}
    for function, key in zip(program.types[1:], recurrence.keys[1:], strict=True):
        layers.setdefault(function, set()).add(key)
    assert all(len(keys) == 1 for keys in layers.values())
    assert all((keys == {None}) == (ran[function] == 1) for function, keys in layers.items())
    repeated = [key for keys in layers.values() for key in keys if key is not None]
    assert len(set(repeated)) == len(repeated)
    found = [(frozenset(program.types[op] for op in loop.body), loop.passes) for loop in recurrence.loops]
    assert Counter(found) == Counter(source.loops())
    assert recurrence.reused == frozenset()


@settings(max_examples=150, deadline=None)
@given(BODIES, st.integers(2, 4))
def test_side_by_side_on_other_inputs_it_is_only_used_again(body: tuple[Part, ...], branches: int) -> None:
    source = named((True, *body), 1, count())
    once, program = Program(), Program()
    source.run(once, Counter())
    for _ in range(branches):
        program.last = program.input
        source.run(program, Counter())
    alone, together = find_recurrence(once.facts()), find_recurrence(program.facts())
    looped = {once.types[op] for loop in alone.loops for op in loop.body}
    reused = {function for function, key in zip(program.types, together.keys, strict=True) if key in together.reused}
    assert Counter(program.types) == Counter({f: branches * n for f, n in Counter(once.types[1:]).items()}) + Counter(
        ["input"]
    )
    assert reused.isdisjoint(looped)
    assert {"f0"} <= reused | looped
