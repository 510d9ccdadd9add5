"""`endoscope.origin(trace)`: where NaN, infinity or an unusual sample begins in one traced piece of code."""

from __future__ import annotations

from collections.abc import Iterable

from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.errors import BadArgument, CannotReplay
from endoscope.replay.backward_producers import backward_origins
from endoscope.replay.outliers import Outliers
from endoscope.replay.producers import forward_origins
from endoscope.replay.sample_maps import SampleMaps
from endoscope.replay.wrong_values import WrongValues
from endoscope.schema.origin import Origin


def origins_of(trace: Trace, node: int | str | None, sample: int | None, of: str) -> list[Origin]:
    """What made NaN or infinity; if nothing did and a node or a sample is named, where that begins to be unusual."""
    if of not in ("value", "gradient"):
        raise BadArgument(f"of={of!r}: of a trace it is 'value' or 'gradient'.")
    trace = trace.live()
    if of == "gradient" and trace.recorder.gradients is None:
        raise BadArgument(
            "This trace has no gradients. Trace with gradients=True, and call backward() on the result or in the block."
        )
    start = None if node is None else _node(trace, node)
    found = nonfinite_origins(trace)
    if sample is not None:
        found = [one for one in found if not one.samples or sample in one.samples]
    if found or (node is None and sample is None):
        return found
    return Outliers(trace, of == "gradient").origins(start, sample)


def _node(trace: Trace, key: int | str) -> int:
    found = trace[key]
    op: Op = found if isinstance(found, Op) else found.ops[-1]  # of several passes, the last
    return op.node


def nonfinite_origins(
    trace: Trace, *, batch_dim: int = 0, batch_size: int = 0, entered: Iterable[int] = ()
) -> list[Origin]:
    """The producers of NaN and infinity; of gradients, if all values that lead anywhere are finite.

    `entered` are slots of batches that went into a model, beside those that the trace knows.
    """
    if not trace.recorder.full:
        raise CannotReplay(
            f"This trace of {trace.name} was taken with save={trace.recorder.save_text}, so most values are not there, "
            "and what made NaN or infinity cannot be told. Trace with save='all'."
        )
    values = WrongValues(trace)
    maps = SampleMaps(trace, batch_dim, batch_size, entered)
    return forward_origins(values, maps) or backward_origins(values, maps)
