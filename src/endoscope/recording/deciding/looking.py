"""Statistics of a few held tensors, before it is decided whether their step is recorded.

items of the step ─► those that are meant ─► stats.measure ─► Look, without a single tensor
"""

from __future__ import annotations

import torch

from endoscope.analysis.user_rules.anomalies import Look
from endoscope.analysis.user_rules.rules import Where, named
from endoscope.recording.hooks.captured import Captured
from endoscope.recording.hooks.modes import quiet
from endoscope.recording.output.measuring import all_rows
from endoscope.recording.output.meter import Row
from endoscope.recording.structure.learned import Structure
from endoscope.schema.stats import SAMPLE, WHOLE
from endoscope.stats import Measured, Request, measure


def look_at(captured: Captured, structure: Structure, step: tuple[int, str], where: Where, samples: bool) -> list[Look]:
    """The statistics of all tensors of a step that are meant; `step` is its number and type. Writes to nothing."""
    types: dict[tuple[str, str, int], str] = {}
    if structure.graph is not None:
        types = {(n["node"], n["role"], n["pass"]): n.get("type", "") for n in structure.graph["nodes"]}
    with quiet(), torch.no_grad():
        rows = [row for row in all_rows(captured, structure) if where.may_be(row.of) and _is_meant(row, types, where)]
        if not rows:
            return []
        measured = measure([Request(row.tensor, row.batch_dim, samples, False, row.minus) for row in rows])
    refused = {number for number, _ in measured.gaps}
    return [_look(row, step, measured, number) for number, row in enumerate(rows) if number not in refused]


def _is_meant(row: Row, types: dict[tuple[str, str, int], str], where: Where) -> bool:
    name = row.name
    type_ = types.get((name.node, name.role, name.pass_), "")
    one = named(name.node, name.pass_, type_, name.kind, name.module)
    return where.names(one, name.role, name.pass_)


def _look(row: Row, step: tuple[int, str], measured: Measured, number: int) -> Look:
    mine = measured.sample_request == number
    samples = {name: measured.samples[name][mine] for name in SAMPLE} if mine.any() else {}
    whole = {name: float(measured.whole[name][number]) for name in WHOLE}
    name = row.name
    return Look(name.node, name.role, name.pass_, row.of, name.kind, step[0], step[1], whole, samples)
