"""The vocabulary of a recorded training run: what a step hands to the store, and what the tables hold.

    trial ─► rank ─► step ─► one row of `stats` per tensor, named by its Key
                       ├──► `samples`, `units`: the same tensor per sample, and per unit over the batch
                       └──► raw values of chosen samples, the graph, metrics, gaps

Shared by the side that writes and the side that reads, so nothing here needs torch, numpy or pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from endoscope.schema import stats

#: Raised when a reader of the old version would misread the new files; a column more is no reason.
FORMAT_VERSION = 1

#: What `gradient` means, by what trial.json says of it; what was recorded before that was said has the second meaning.
GRADIENT_USED = "used"
GRADIENT_MEANINGS = {
    GRADIENT_USED: "what the optimizer used: after accumulation, unscaling and clipping",
    "": "what backward() computed in the step: before clipping and unscaling",
}

GRADIENT = "gradient:"  # `of` of a gradient is this and the name of the loss
USED = "gradient"  # `of` of what the optimizer uses of a parameter, where that is not what one loss gives in a process
OF_THIS_RANK = "local_gradient"  # `of` of what one process has computed, before others are averaged in
NO_BATCH = -1  # batch_dim of a tensor that has no samples
NO_STEP = -1  # step of a note or a gap that belongs to no step


@dataclass(frozen=True, slots=True)
class Key:
    """Which tensor a row is about; equal keys share one number for the whole trial."""

    node: str  # dotted module path, label or tag
    role: str = ""  # which of several tensors in the node; empty if there is one
    pass_: int = 1  # n-th time in the step
    of: str = "value"  # value, gradient:<loss>, gradient, local_gradient, parameter or update
    kind: str = "computed"  # input, parameter, buffer, computed, target, loss, output
    shape: tuple[int, ...] = ()
    dtype: str = "float32"  # torch's name for it, without "torch."
    batch_dim: int = NO_BATCH
    module: str = ""  # address of the module that made it
    source: str = ""  # file:line of the user's code
    placement: str = ""  # JSON: what it is to the tensors of that name on other ranks; empty: nothing is known


class RawValues(NamedTuple):
    """Raw values of one tensor: the chosen samples stacked along dimension 0, or all of it."""

    key: int
    array: Any  # numpy; for dtypes that numpy lacks (bfloat16, float8_*) their bits as integers of that size
    samples: Sequence[int] | None = None  # which samples array[0], array[1], … are; None: the whole tensor


class GapRecord(NamedTuple):
    """Something that could not be recorded, and why."""

    node: str
    of: str
    reason: str


class TimesRecord(NamedTuple):
    """Where the time of the steps of one block went; in the order of the columns of `times`."""

    step: int  # where the block begins
    type: str
    captured: int  # 1: values of these steps were held
    steps: int
    seconds: float  # in all; the next four are parts of it
    data: float
    forward: float
    backward: float
    update: float
    longest: float  # of the longest step
    peak_memory: int  # bytes


@dataclass(slots=True, kw_only=True)
class StepRecord:
    """Everything that one recorded step hands to the store; written as one commit."""

    number: int
    type: str
    time: float  # unix seconds
    why: str = ""  # why it was recorded
    recording_seconds: float = 0.0  # what recording it cost
    graph_hash: str = ""
    graph: Mapping[str, Any] | None = None  # needed the first time a hash is seen, ignored later
    keys: Any = ()  # numbers, as an array or list: row i of `measured` is about keys[i]
    measured: Any = None  # an object with the fields of `endoscope.stats.Measured`
    raw: Sequence[RawValues] = ()
    raw_samples: Sequence[int] = ()  # the samples that were chosen to be kept raw
    categories: Sequence[str] = ()  # of every sample of the batch, if the user gave them
    passes: int = 1  # forward passes in this step
    iteration: int = -1  # returns to the first optimizer; -1: no optimizer has stepped
    skipped: bool = False  # its gradients were thrown away, unused
    metrics: Mapping[str, float] = field(default_factory=dict)
    gaps: Sequence[GapRecord] = ()
    config: Mapping[str, Any] = field(default_factory=dict)  # what the user said about this step
    extra: Mapping[str, Any] = field(default_factory=dict)  # free: cosines between gradients, …


_ROW = (("ordinal", "int32"), ("step", "int64"), ("key", "int32"))  # ordinal: n-th recorded step, from 0


def _of_whole() -> Iterator[tuple[str, str]]:
    return ((name, "int64" if name in stats.COUNTS else "float64") for name in stats.WHOLE)


#: Table -> (column, type) in the order of the file. Readers go by name: columns may be added at the end.
#: Lists come last in a row, so that the place of a plain column depends only on the number of rows.
TABLES: dict[str, Sequence[tuple[str, str]]] = {
    "keys": (
        ("key", "int32"),
        ("node", "string"),
        ("role", "string"),
        ("pass", "int32"),
        ("of", "string"),
        ("kind", "string"),
        ("shape", "list<int32>"),
        ("dtype", "string"),
        ("batch_dim", "int32"),
        ("module", "string"),
        ("source", "string"),
        ("placement", "string"),  # JSON
    ),
    "stats": stats.Live(lambda: (*_ROW, *_of_whole(), ("hist_first", "int16"), ("hist", "list<uint32>"))),
    "samples": (*_ROW, ("sample", "list<int32>"), *((name, "list<float32>") for name in stats.SAMPLE)),
    "units": (*_ROW, ("unit_shape", "list<int32>"), *((name, "list<float32>") for name in stats.UNIT)),
    "steps": (
        ("ordinal", "int32"),
        ("step", "int64"),
        ("type", "string"),
        ("time", "float64"),
        ("why", "string"),
        ("recording_seconds", "float64"),
        ("graph", "string"),
        ("raw", "string"),  # file with the raw values; empty if there are none
        ("raw_samples", "list<int32>"),
        ("categories", "list<string>"),
        ("passes", "int32"),
        ("tensors", "int32"),
        ("config", "string"),  # JSON
        ("extra", "string"),  # JSON
        ("iteration", "int32"),
        ("skipped", "int32"),  # 1: its update was skipped
    ),
    "metrics": (("step", "int64"), ("time", "float64"), ("name", "string"), ("value", "float64"), ("type", "string")),
    "times": (
        ("step", "int64"),
        ("type", "string"),
        ("captured", "int32"),
        ("steps", "int32"),
        ("seconds", "float64"),
        ("data", "float64"),
        ("forward", "float64"),
        ("backward", "float64"),
        ("update", "float64"),
        ("longest", "float64"),
        ("peak_memory", "int64"),
    ),
    "notes": (("step", "int64"), ("time", "float64"), ("text", "string")),
    "gaps": (("step", "int64"), ("node", "string"), ("of", "string"), ("reason", "string"), ("time", "float64")),
}

#: Tables whose rows are about one tensor at one recorded step.
PER_STEP = ("stats", "samples", "units")
#: Tables that lose their rows of a step when the disk budget is used up and the step is thinned.
THINNED = ("steps", *PER_STEP)

#: Name of a dtype -> what safetensors calls it. complex128 is written as pairs of F64, others become a gap.
RAW_DTYPES = {
    "bool": "BOOL",
    "uint8": "U8",
    "int8": "I8",
    "int16": "I16",
    "uint16": "U16",
    "int32": "I32",
    "uint32": "U32",
    "int64": "I64",
    "uint64": "U64",
    "float16": "F16",
    "float32": "F32",
    "float64": "F64",
    "complex64": "C64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
