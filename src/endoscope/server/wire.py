"""What travels between server and page. The one definition: frontend/src/api/types.ts is made from this file.

Descriptions travel as JSON, which has no NaN: it becomes null there. Tables travel as Arrow streams, and a class named
`…Row` says which columns one has. Raw values travel as little-endian float32, with their shape in a header.
HTTP_API.md says which address answers with what.
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, cast

from endoscope.schema import stats

LAYOUT_VERSION = 1
SELECTION_VERSION = 1


class Part(TypedDict):
    """One of several answers that travel together."""

    address: str  # what was asked, without /api/
    status: int
    bytes: int  # without those that fill it up to a multiple of eight
    headers: dict[str, str]  # names in small letters


class TrialSummary(TypedDict):
    """One trial in the list of all trials."""

    name: str  # of its folder; addresses use it
    created: float  # unix seconds; 0 if that is lost
    updated: float  # when something was last added
    steps: int  # recorded steps
    lastStep: int | None  # number of the newest recorded step
    live: bool  # something was added a moment ago, and it has not ended
    closed: bool  # it ended properly
    known: bool  # false: nothing of it has been read yet, so steps and times are not known
    readable: bool  # false: `problems` says why, and everything else here is empty
    problems: list[str]
    ranks: list[int]  # that can be looked at by themselves, as `NAME:rank-1`; empty for a trial of one process


class Catalog(TypedDict):
    """All trials that are served."""

    version: str  # of Endoscope
    root: str  # the folder, as it was typed
    trials: list[TrialSummary]
    trace: str | None  # a trace is served, and no trials: its name


class Statistic(TypedDict):
    """One statistic, as menus and labels show it."""

    name: str
    label: str
    scale: Literal["log", "linear", "diverging"]  # of colours: for magnitudes, for shares, for both signs
    isCount: bool  # colours show its share of all elements
    ofSamples: bool  # it is also known of each sample
    ofUnits: bool  # it is also known of each unit over the batch


class Derived(TypedDict):
    """A statistic that is made of others, for layers × steps."""

    name: str
    label: str
    scale: Literal["log", "linear", "diverging"]
    of: list[str]  # value, gradient, update: what it can be of


class StepColumns(TypedDict):
    """All recorded steps of a trial, one list per fact, in the order in which they were recorded."""

    ordinal: list[int]  # n-th recorded step of the trial, from 0; gaps where steps were thinned
    number: list[int]
    type: list[int]  # place in `types`
    graph: list[int]  # place in `graphs`; -1: none was recorded
    time: list[float]  # unix seconds
    seconds: list[float]  # what recording it cost
    why: list[int]  # place in `reasons`
    raw: list[bool]  # whether raw values were kept
    tensors: list[int]  # how many were recorded


class Trial(TypedDict):
    """One trial, without numbers of tensors."""

    name: str
    created: float
    updated: float
    live: bool
    closed: bool
    config: dict[str, Any]
    versions: dict[str, str]
    types: list[str]
    losses: list[str]
    reasons: list[str]  # why steps were recorded
    statistics: list[Statistic]  # that were recorded of whole tensors
    derived: list[Derived]  # of layers × steps
    steps: StepColumns
    graphs: list[str]  # hashes
    metrics: list[str]  # names
    problems: list[str]
    gaps: int
    notes: int
    tensors: int  # different ones that were ever recorded


# `pass` is a word of Python's own, so a field of this name cannot be written in a class.
_Pass = TypedDict("_Pass", {"pass": int})


class GraphNode(_Pass):
    """One recorded tensor of a graph."""

    node: str
    role: str
    kind: str  # input, parameter, buffer, computed, target, loss, output
    module: str  # address of the module it belongs to; empty outside of all modules
    modules: list[str] | None  # addresses of the modules that were running, outermost first
    source: str  # file:line
    type: str | None  # the operation that made it
    shape: list[int] | None


class Graph(TypedDict):
    """A dependency graph."""

    hash: str
    nodes: list[GraphNode]
    edges: list[tuple[int, int, list[str]]]  # from, to (places in `nodes`), arguments through which it is used


class StepFacts(TypedDict):
    """What is known about one step; in the schema of its table, under the key `step`."""

    number: int
    ordinal: int
    type: str
    time: float
    why: str
    seconds: float
    graph: str
    passes: int
    rawSamples: list[int]
    categories: list[str]  # of all samples of the batch, or of none
    config: dict[str, Any]
    extra: dict[str, Any]


class Tensors(TypedDict):
    """Which tensors were recorded at which steps. Columns, one entry per tensor, whatever its shape was."""

    node: list[str]
    role: list[str]
    passes: list[int]
    of: list[str]
    kind: list[str]
    batch: list[int]  # how many samples it has; 0: none. Of several shapes the largest
    sets: list[list[int]]  # different collections of tensors that steps have; places in the columns, ascending
    ordinals: list[int]  # the steps
    setOf: list[int]  # for each of them, the place in `sets`; -1: it can no longer be read


class Note(TypedDict):
    """Something the user wrote down."""

    step: int
    time: float
    text: str


class Gap(TypedDict):
    """Something that could not be recorded, or can no longer be read."""

    step: int  # -1 if it belongs to no single step
    node: str
    of: str
    reason: str
    time: float


class ModuleParameter(TypedDict):
    """A parameter that belongs to a module itself."""

    name: str  # of its node
    shape: list[int] | None  # null: not known before the first use
    dtype: str
    trainable: bool


class Module(TypedDict):
    """One module of what was watched."""

    address: str  # empty for the whole model
    type: str  # its class
    children: list[str]  # addresses
    parameters: int  # numbers in it, all modules inside included
    trainable: int
    own: list[ModuleParameter]
    settings: str


class Modules(TypedDict):
    """The tree of modules; empty if nothing was watched."""

    modules: list[Module]


class Layout(TypedDict):
    """How the user arranged the graph; kept in page.json in the folder of the trial."""

    version: int
    pins: dict[str, tuple[float, float]]  # "n:" and a node, or "g:" and a module -> where it was put
    renames: dict[str, str]  # node or address of a module -> what the user calls it
    groups: list[str]  # prefixes of names that get a box of their own


class PictureHead(TypedDict):
    """What stands before the numbers of a picture of the graph."""

    boxes: int
    edges: int
    tensors: int
    points: int  # numbers in all paths
    width: float
    height: float
    opened: list[str]  # addresses of open modules
    addresses: list[str]  # of modules with a box
    labels: list[str]  # per box
    details: list[str]


class TraceNotice(TypedDict):
    """Something that the capture could not see."""

    kind: str
    text: str
    source: str  # file:line in function; empty if it has no place


class TraceLoop(TypedDict):
    """Layers that run again on what they made before."""

    passes: int
    depth: int  # loops around it
    source: str
    layers: list[str]


class TraceDecision(TypedDict):
    """A test that a tensor answered, and what ran because of it."""

    kind: str  # if, while, assert, …
    text: str  # of the test in the source
    source: str  # file:line
    unknown: str  # why the test could not be found; empty if it was
    value: str  # what the tensor said
    branch: str  # that ran
    settled: bool  # this value alone chose the branch
    nth: int  # the n-th time that this was asked
    steering: list[str]  # labels of operations whose value was asked
    ops: list[str]  # labels of operations of the branch


class TraceFacts(TypedDict):
    """A whole trace, without its graph."""

    name: str
    operations: int
    parameters: int  # numbers in all parameters
    bytes: int  # of all values
    flops: int  # of all operations whose count is known
    seconds: float  # inside of torch functions
    complete: bool
    finished: bool
    warnings: list[TraceNotice]
    loops: list[TraceLoop]
    decisions: list[TraceDecision]
    decisionsLeftOut: int  # of those that would make this too long
    unused: list[str]  # parameters and buffers that nobody reads
    passes: int  # how often a layer runs at most
    gradients: bool  # it was traced with gradients=True


class TraceModule(TypedDict):
    """A box that can be opened: a module, or one call of it."""

    address: str
    type: str  # its class; empty for what only holds others
    label: str
    parent: int  # place of the box around it; -1 at the top


class TraceGraph(TypedDict):
    """Operations of a trace as columns, in the order of execution; without parameters that nobody reads."""

    rolled: bool  # all passes of a layer are one node
    node: list[str]  # the label, or rolled the layer
    label: list[str]  # with the pass
    passNumber: list[int]
    kind: list[str]
    type: list[str]  # plain name of the function
    shape: list[list[int] | None]  # null: it returned none, or several
    source: list[int]  # place in `sources`; -1: none
    sources: list[str]  # file:line
    module: list[int]  # the innermost box, place in `modules`; -1: none
    modules: list[TraceModule]  # every box before those inside of it
    edges: list[int]  # from, to, from, to, …


class TraceHeatRow(TypedDict):
    """One node of a `TraceGraph`, for colours."""

    value: float
    state: int  # uint8: 0 no value, 1 a number, 2 some element is NaN, 3 some element is infinite


class TraceOutput(TypedDict):
    """A tensor that an operation returned."""

    shape: list[int]
    dtype: str
    device: str
    bytes: int
    learns: bool  # it requires a gradient


class TraceOp(TypedDict):
    """One operation of a trace."""

    label: str
    layer: str
    passNumber: int
    passes: int
    kind: str
    type: str
    path: str  # where an input, output, parameter or buffer stands
    function: str  # its own name: add_ where the type says add; empty for what is no operation
    inPlace: bool
    gradFn: str
    arguments: list[str]
    outputs: list[TraceOutput]
    seconds: float
    flops: int | None  # null: the count is not known
    bytes: int
    modules: list[str]  # calls around it, outermost first
    functions: list[str]  # custom autograd functions and registered operators around it
    left: list[str]  # calls of modules that returned it
    source: str  # file:line in function
    parents: list[str]
    children: list[str]
    neighboursLeftOut: int
    edits: list[str]
    keys: list[str]  # every text under which it is found


class TraceCode(TypedDict):
    """Lines of a file around an operation."""

    file: str
    line: int
    function: str
    first: int  # number of the first line
    lines: list[str]
    problem: str  # why there are none, or why they may be others; empty if all is well


class TraceFound(TypedDict):
    """Operations that were asked for."""

    labels: list[str]
    sentence: str  # how many there are, or why there are none


class TraceValueRow(TypedDict):
    """One tensor of a trace. Beside these, one column for each statistic."""

    hist_first: int
    hist: list[int]


class Finding(TypedDict):
    """One thing that looks wrong."""

    id: str  # its name in the trial: stays the same while more is recorded
    check: str
    severity: Literal["info", "warning", "error"]
    title: str  # one sentence, which names the place
    detail: str  # a sentence with the numbers
    node: str  # where it begins: a node, a metric, or empty
    role: str
    of: str
    firstStep: int
    lastStep: int
    types: list[str]  # of the steps at which it was seen
    samples: list[int]  # of the batch of the first step, where known
    value: float | None  # what was measured; null if it is not finite
    threshold: float | None
    strength: float | None  # how many times beyond what healthy trainings show, or else beyond the threshold
    usual: tuple[float, float] | None  # where 98 of 100 healthy tensors of this kind lie; null: not known
    steps: int  # recorded steps at which it was seen
    source: str  # file:line
    causes: list[str]
    remedies: list[str]
    link: str  # the view that shows it: what stands behind the page's address, from # on
    follows: str  # the finding that probably explains it, by its id; empty if none does
    also: list[str]  # other nodes with the same symptom


class OverviewFinding(TypedDict):
    """The same finding in one trial or in many."""

    finding: Finding  # as it is in `trial`, which has the worst
    trial: str
    trials: list[int]  # all that have it, as places in `OverviewFindings.trials`
    followers: int  # findings of `trial` that it probably explains


class OverviewFindings(TypedDict):
    """What looks wrong in all trials. The lists have one entry for each trial."""

    findings: list[OverviewFinding]  # the worst first; without those that follow from others, and without notices
    checks: int  # that were run
    checking: bool  # more is on its way
    trials: list[str]
    checked: list[bool]  # false: nothing is known yet
    errors: list[int]
    warnings: list[int]
    notices: list[int]
    lastStep: list[int | None]  # up to which step the findings hold
    problems: list[str]  # why it could not be checked; empty where it could


class SilencedCheck(TypedDict):
    """What nobody wants to hear of; kept in findings.json in the folder of the trial."""

    check: str
    node: str | None  # null: everywhere
    findings: list[Finding]  # that are not shown because of it


class Findings(TypedDict):
    """What looks wrong in a trial, the most important first."""

    checked: bool  # false: the first result is still on its way
    checking: bool  # a newer result is on its way
    problem: str | None  # why it could not be checked
    checks: int  # how many were run
    steps: int  # recorded steps that they looked at
    lastStep: int | None
    findings: list[Finding]
    silenced: list[SilencedCheck]


class Silencing(TypedDict):
    """What the page sends to silence a check at a node, or everywhere, or to take that back."""

    check: str
    node: str | None  # null: everywhere
    silenced: bool


class Failure(TypedDict):
    """Every answer with a status of 400 or more."""

    error: str  # a sentence for the user
    kind: str  # name of the exception


class TrialNews(TypedDict):
    """Event `trial`: it has grown, or is new."""

    trial: str
    steps: int
    metrics: int  # rows
    lastStep: int | None
    closed: bool


class FindingsNews(TypedDict):
    """Event `findings`: there are newer ones, or others are silenced."""

    trial: str


class OverviewNews(TypedDict):
    """Event `overview`: more is known of some trial than the table of all trials says."""

    trials: int  # how many there are


class CatalogNews(TypedDict):
    """Event `catalog`: trials have come or gone."""

    trials: list[str]


class ViewsNews(TypedDict):
    """Event `views`: the file with custom views was changed."""

    file: str


class ViewEntry(TypedDict):
    """One function of the file with custom views."""

    name: str
    title: str


class Views(TypedDict):
    """The custom views."""

    file: str | None  # null if the server was started without any
    views: list[ViewEntry]
    problem: str | None  # why the file cannot be used: a sentence or a traceback


class ViewResult(TypedDict):
    """What a custom view returned."""

    kind: Literal["image", "frame", "text", "error"]
    text: str  # of kind text; for kind error a traceback or a sentence
    url: str  # of kind image for <img>, of kind frame for a sandboxed <iframe>; otherwise empty
    seconds: float  # how long the function took


_PassIfChosen = TypedDict("_PassIfChosen", {"pass": int | None})


class ViewSelection(_PassIfChosen):
    """What a custom view is told about the page, in the address as JSON; more fields are handed on as they are."""

    trials: list[str]
    type: str | None
    step: int | None
    of: str | None
    sample: int | None
    node: str | None
    role: str | None


class SeriesRow(TypedDict):
    """One step of a series. Beside these, one column of float64 for each statistic that was asked for."""

    step: int
    type: str


class HistogramRow(TypedDict):
    """The histogram of one tensor at one step."""

    step: int
    type: str
    hist_first: int  # number of the first bin that is listed
    hist: list[int]  # counts from there on


class HeatRow(_Pass):
    """One tensor over all steps; ordinals of the steps are in the schema, under the key `ordinals`."""

    node: str
    role: str
    of: str
    kind: str
    values: list[float]  # float32, of fixed length: one for each step; NaN where a step has no such tensor


class LayersRow(_Pass):
    """One tensor over all steps, for layers × steps; ordinals of the steps are in the schema, under `ordinals`."""

    node: str
    role: str
    of: str
    kind: str
    values: list[float]  # float32, of fixed length: one for each step
    states: list[int]  # uint8, the same: 0 absent, 1 a number, 2 some element is NaN, 3 some element is infinite


class OverviewRow(TypedDict):
    """One trial in the table of all, the newest first. Metadata `complete`: whether all have been read."""

    name: str
    known: int  # 0 not read yet, 1 read, 2 cannot be read
    problem: str  # why it cannot be read, or what is damaged
    created: float
    updated: float
    live: bool
    closed: bool
    steps: int  # recorded
    lastStep: int  # number of the newest recorded step; -1: none
    trainedTo: int  # number of the newest step that anything is known of; -1: none
    cost: float  # share of the training's time that recording took; NaN if unknown
    bytes: int  # on disk
    config: str  # JSON, without the recorder's own report
    metrics: list[str]
    last: list[float]  # one for each of `metrics`, as are these
    lowest: list[float]  # of the finite values
    highest: list[float]
    loss: str  # the metric of the curve
    curveSteps: list[float]
    curveValues: list[float]  # NaN where the metric is NaN or infinite


class StepRow(_Pass):
    """One tensor at one step. Beside these, one column for each of the trial's statistics."""

    node: str
    role: str
    of: str
    kind: str
    hist_first: int
    hist: list[int]
    shape: list[int]
    dtype: str
    batch_dim: int  # -1: it has no samples
    module: str
    source: str
    raw: bool  # whether raw values were kept


class StepSampleRow(_Pass):
    """One sample of one tensor at one step. Beside these, one column for each statistic of samples."""

    node: str
    role: str
    of: str
    kind: str


class SampleRow(TypedDict):
    """One sample of one tensor. Beside this, one column for each statistic of samples."""

    sample: int


class UnitRow(TypedDict):
    """One unit of one tensor, flattened; the shape of the units is in the schema, under the key `shape`."""

    mean: float
    std: float
    abs_max: float


class MetricRow(TypedDict):
    """One value of one metric."""

    step: int
    time: float
    name: str
    value: float
    type: str


def derived(one: Any) -> Derived:
    return Derived(name=one.name, label=one.label, scale=one.scale, of=list(one.of))


def statistic(one: stats.Statistic) -> Statistic:
    return Statistic(
        name=one.name, label=one.label, scale=cast(Any, one.scale), isCount=one.is_count,
        ofSamples=one.of_samples, ofUnits=one.of_units,
    )  # fmt: skip
