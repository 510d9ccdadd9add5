"""Docs are code: whatever a user can read from a trace, an operation or a report is on its page."""

import dataclasses
import re

import pytest
import torch

import endoscope
from endoscope import errors
from endoscope.analysis.user_rules.anomalies import Anomaly, Look
from endoscope.capture.change.edit import Edit
from endoscope.capture.views.loops import Loop
from endoscope.capture.views.metadata import FunctionCall, ParameterUse, Place, Relations
from endoscope.capture.views.modules import Layer, ModuleInfo
from endoscope.capture.views.op import Op
from endoscope.capture.views.result import Trace
from endoscope.capture.views.structure import TraceGraph
from endoscope.capture.views.summary import Timing, Totals
from endoscope.capture.views.tables import Table
from endoscope.findings.change_points import Change, Shift
from endoscope.findings.finding import Finding
from endoscope.findings.together import Correlation, Interval
from endoscope.query.catalog import Recordings
from endoscope.query.reading.tables import Tables
from endoscope.query.reading.values import Histogram
from endoscope.query.recording import Gap, Note, Recording
from endoscope.query.series import Series
from endoscope.query.sql import Answer
from endoscope.query.steps import Step
from endoscope.replay.divergence import Apart, Comparison
from endoscope.replay.report import Failure, Report
from endoscope.schema.graph import GraphEdge
from endoscope.schema.origin import Operand, Origin
from tests.house.pages import headings
from tests.house.tree import ROOT

REFERENCE = ROOT / "docs" / "reference"
PAGES = {
    Trace: "trace", Layer: "trace", ModuleInfo: "trace", Table: "trace", Timing: "trace", Totals: "trace",
    Loop: "loops", Op: "op", FunctionCall: "op", Relations: "op", Place: "op", ParameterUse: "op",
    TraceGraph: "graph", GraphEdge: "graph",
    Report: "validate", Failure: "validate", Edit: "edits", Comparison: "edits", Apart: "edits",
    Recording: "reading", Recordings: "reading", Tables: "reading", Step: "reading", Series: "reading",
    Answer: "reading",
    Note: "reading", Gap: "reading", Histogram: "reading", Finding: "findings",
    Origin: "origin", Operand: "origin", Shift: "origin", Change: "origin",
    Correlation: "correlation", Interval: "correlation", Anomaly: "anomalies", Look: "anomalies",
}  # fmt: skip

# Without an underscore, because other layers of ours use them; not meant for users.
OURS = {
    Trace: """recorder values views graph_data children raw op_at position_of keys labels near origin of_kind caches
        record store live result_from returned_sequence arguments_with conditions_by_node decisions_by_node learned
        seal sealed with_values_of""",
    Edit: "text compute part arithmetic constant applies_to apply",
    Op: "node line",
    Table: "count index",  # every sequence has them
    Report: "fail",
    Recording: "read preload",
    Recordings: "get items keys values",  # every mapping has them
    Step: "raw_file config_json extra_json",
    **dict.fromkeys((Note, Gap, Histogram, Interval), "count index"),  # every tuple has them
}


def attributes(cls: type) -> set[str]:
    """Public names of the class and of its instances."""
    names = set(dir(endoscope.trace(torch.sin, torch.zeros(1)) if cls is Trace else cls))
    if dataclasses.is_dataclass(cls):
        names |= {field.name for field in dataclasses.fields(cls)}
    return {name for name in names if not name.startswith("_")} - set(OURS.get(cls, "").split())


@pytest.mark.parametrize("cls", PAGES, ids=lambda cls: cls.__name__)
def test_every_attribute_is_on_its_page(cls: type) -> None:
    text = (REFERENCE / f"{PAGES[cls]}.md").read_text(encoding="utf-8")
    words = {word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"\w+", code)}
    assert not attributes(cls) - words, f"attributes of {cls.__name__} that {PAGES[cls]}.md does not mention"


def test_every_error_has_a_heading() -> None:
    classes = {name for name, value in vars(errors).items() if isinstance(value, type) and issubclass(value, Exception)}
    titles = headings(REFERENCE / "errors.md")
    assert not {name for name in classes if f"`{name}`" not in titles}
