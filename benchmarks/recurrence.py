"""How long finding layers, naming them and finding loops takes, over the number of operations.

python benchmarks/recurrence.py [--real]

Near-linear means that the microseconds per operation stay about the same from 1,000 to 50,000 operations. The first
runs are traces of real networks. The others are made up, and the worst of them do not occur in real networks.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator

import measure

measure.one_thread()

import torch  # noqa: E402  (one_thread sets a variable that torch reads when it is imported)
from models import HandWrittenRNN, TinyOps  # noqa: E402
from table import print_table  # noqa: E402
from torch import nn  # noqa: E402

import endoscope  # noqa: E402
from endoscope.analysis.recurrence import OpFacts, find_recurrence  # noqa: E402
from endoscope.analysis.recurrence.naming import name_layers  # noqa: E402

SIZES = (1_000, 5_000, 10_000, 50_000)
SECS_AT_MOST = {5_000: 0.3, 50_000: 5.0}
ROUNDS = 5


class Run:
    """A run that is written down operation by operation; node 0 is its input."""

    def __init__(self) -> None:
        self.statements: list[int] = [-1]
        self.types = ["input"]
        self.parents: list[tuple[int, ...]] = [()]
        self.ops: list[int] = [0]
        self.parameters: set[int] = set()

    def parameter(self) -> int:
        self.parents.append(())
        self.parameters.add(len(self.parents) - 1)
        return len(self.parents) - 1

    def add(self, statement: int, *parents: int, function: str = "") -> int:
        """An operation on these nodes, or else on the last operation."""
        self.types.append(function or f"function{statement % 7}")
        self.parents.append(parents or (self.ops[-1],))
        self.ops.append(len(self.parents) - 1)
        self.statements.append(statement)
        return self.ops[-1]

    def facts(self) -> OpFacts:
        numbers = {statement: n for n, statement in enumerate(dict.fromkeys(self.statements[1:]))}
        statements = [-1, *[numbers[statement] for statement in self.statements[1:]]]
        return OpFacts(
            nodes=self.ops,
            types=self.types,
            statements=statements,
            parents=self.parents,
            parameters=self.parameters,
            buffers=frozenset(),
            constants=frozenset(),
            signature=lambda op: self.types[op],
            modules=lambda op: (),
            reads=lambda op: tuple((parent, 0) for parent in self.parents[self.ops[op]]),
        )


def feed_forward(run: Run, size: int) -> None:
    """Residual blocks, each with parameters of its own."""
    for block in range(size // 6):
        start = run.ops[-1]
        for step in range(6):
            last = run.ops[-1]
            run.add(6 * block + step, *(run.parameter(), last) if step in (0, 3) else (start, last))


def written_line_by_line(run: Run, size: int) -> None:
    """Every operation a statement of its own, no parameters."""
    for n in range(size):
        run.add(n)


def one_loop(run: Run, size: int) -> None:
    """Five operations again and again, no parameters."""
    for n in range(size):
        run.add(n % 5)


def nested_loops(run: Run, size: int) -> None:
    """Three levels of loops without parameters."""
    while len(run.ops) < size:
        for _ in range(10):
            run.add(0)
            for _ in range(4):
                run.add(1)
                for _ in range(3):
                    run.add(2)


def recurrent_cell(run: Run, size: int) -> None:
    """A cell of 17 operations, two of them with parameters, one step after the other."""
    first, second, state = run.parameter(), run.parameter(), 0
    for _ in range(size // 17):
        read = run.add(0, 0)
        inputs = run.add(1, read, first)
        hidden = run.add(2, state, second)
        run.add(3, inputs, hidden)
        for step in range(4, 17):
            state = run.add(step, run.ops[-1], run.ops[-3])


def same_model_again(run: Run, size: int) -> None:
    """A whole model of 500 operations with parameters, run again on its own result."""
    weights = [run.parameter() for _ in range(100)]
    for n in range(size):
        step = n % 500
        run.add(step, *(weights[step // 5], run.ops[-1]) if step % 5 == 0 else ())


def siamese(run: Run, size: int) -> None:
    """One model of 100 operations, side by side on hundreds of inputs."""
    weights = [run.parameter() for _ in range(20)]
    for n in range(size):
        step = n % 100
        before = 0 if step == 0 else run.ops[-1]
        run.add(step, *(weights[step // 5], before) if step % 5 == 0 else ())


def map_over_parts(run: Run, size: int) -> None:
    """A loop whose passes do not depend on each other."""
    for n in range(size):
        run.add(n % 5, *(0,) if n % 5 == 0 else ())


def one_operation(run: Run, size: int) -> None:
    """The same statement throughout."""
    for _ in range(size):
        run.add(0)


def fibonacci_word(run: Run, size: int) -> None:
    """Two statements in the order that repeats itself most without being periodic."""
    word, longer = [0], [0, 1]
    while len(longer) < size:
        word, longer = longer, longer + word
    for statement in longer[:size]:
        run.add(statement)


def growing_periods(run: Run, size: int) -> None:
    """Loops of one, two, three, ... operations, three passes each."""
    period = 1
    while len(run.ops) < size:
        for n in range(3 * period):
            run.add(n % period)
        period += 1


def random_order(run: Run, size: int) -> None:
    """Thirty statements in random order, reading whatever came before; some share parameters."""
    chance = random.Random(0)
    weights = [run.parameter() for _ in range(3)]
    for _ in range(size):
        statement = chance.randrange(30)
        reads = chance.sample(run.ops[-20:], k=min(2, len(run.ops)))
        run.add(statement, *reads, *weights[statement : statement + 1])


def one_after_many(run: Run, size: int) -> None:
    """Two passes of a layer, each read by thousands of operations that look alike but are written out."""
    weight = run.parameter()
    for half in range(2):
        layer = run.add(half * size, run.ops[-1], weight, function="linear")
        for n in range(1, size // 2):
            run.add(half * size + n, layer, function="relu")


RUNS: tuple[Callable[[Run, int], None], ...] = (
    feed_forward, written_line_by_line, one_loop, nested_loops, recurrent_cell, same_model_again, siamese,
    map_over_parts, one_operation, fibonacci_word, growing_periods, random_order, one_after_many,
)  # fmt: skip


# ---- traces of real networks -----------------------------------------------------------------------------------------

Traced = Callable[[], OpFacts]


def traced_rnn(size: int) -> Traced:
    """An LSTM written out, 17 operations a step."""
    return _traced(HandWrittenRNN(), torch.randn(4, size // 17, 16))


def traced_tiny_ops(size: int) -> Traced:
    """Five operations without parameters, again and again."""
    return _traced(TinyOps(size), torch.randn(4, 4))


def traced_deep(size: int) -> Traced:
    """Linear layers with parameters of their own: nothing repeats."""
    layers = [module for _ in range(size // 2) for module in (nn.Linear(4, 4), nn.ReLU())]
    return _traced(nn.Sequential(*layers), torch.randn(4, 4))


def _traced(model: nn.Module, x: torch.Tensor) -> Traced:
    """Gathering what is known of the operations is part of the price."""
    with torch.no_grad():
        trace = endoscope.trace(model, x, save="none")
    facts: Traced = trace.graph_data.facts
    return facts


REAL: tuple[Callable[[int], Traced], ...] = (traced_rnn, traced_tiny_ops, traced_deep)


# ---- times -----------------------------------------------------------------------------------------------------------


def made_up(build: Callable[[Run, int], None], size: int) -> Traced:
    run = Run()
    build(run, size)
    facts = run.facts()
    return lambda: facts


def timed(gather: Traced) -> tuple[list[float], int]:
    """Seconds for facts, layers, names and loops (medians over a few rounds), and how many layers run again."""
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        clock = [time.process_time()]
        facts = gather()
        clock.append(time.process_time())
        recurrence = find_recurrence(facts)
        clock.append(time.process_time())
        names = name_layers(facts.types, recurrence.keys)
        clock.append(time.process_time())
        assert recurrence.loops is not None
        clock.append(time.process_time())
        rounds.append([after - before for before, after in itertools.pairwise(clock)])
    return [statistics.median(column) for column in zip(*rounds, strict=True)], sum(n > 1 for n in names.passes)


def rows(real_only: bool) -> Iterator[list[str]]:
    yield ["run", "operations", "facts ms", "layers ms", "names ms", "loops ms", "µs/op", "repeated layers", ""]
    runs = [(one.__name__, one) for one in REAL]
    if not real_only:
        runs += [(one.__name__, lambda size, one=one: made_up(one, size)) for one in RUNS]  # type: ignore[misc]
    for name, make in runs:
        for size in SIZES:
            secs, repeated = timed(make(size))
            late = "MISSED" if sum(secs) > SECS_AT_MOST.get(size, sum(secs)) else ""
            times = [f"{1e3 * part:.1f}" for part in secs]
            yield [name, f"{size:,}", *times, f"{1e6 * sum(secs) / size:.2f}", f"{repeated:,}", late]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Time of finding and naming layers, and of finding loops.")
    parser.add_argument("--real", action="store_true", help="only the traces of real networks")
    print_table(list(rows(parser.parse_args().real)))
