"""Statistics of a few held tensors, before it is decided whether their step is recorded.

items of the step ─► those that are meant ─► stats.measure ─► Look, without a single tensor
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from endoscope.analysis.anomalies import Look
from endoscope.analysis.rules import Where, named
from endoscope.recording.capture import Capture
from endoscope.recording.measuring import Row, rows_of
from endoscope.recording.structure import Item, Structure
from endoscope.schema.stats import SAMPLE, WHOLE
from endoscope.stats import Measured, Request, measure

MOST_STRUCTURES = 64  # for which it is remembered what a rule means


class Chosen(NamedTuple):
    """What a rule means in the steps of one structure."""

    structure: Structure  # held, so that its identity stays its own
    items: list[Item]


def look_at(
    capture: Capture, structure: Structure, step: tuple[int, str], where: Where, known: dict[int, Any], samples: bool
) -> list[Look]:
    """The statistics of all tensors of a step that are meant; `step` is its number and type. Writes to nothing."""
    items = _chosen(structure, where, known)
    if not items:
        return []
    with torch.no_grad(), torch._C.DisableTorchFunction():
        rows = [row for row in rows_of(capture, items) if where.may_be(row.of)]
        measured = measure([Request(row.tensor, row.batch_dim, samples, False, row.minus) for row in rows])
    refused = {number for number, _ in measured.gaps}
    return [_look(row, step, measured, number) for number, row in enumerate(rows) if number not in refused]


def _chosen(structure: Structure, where: Where, known: dict[int, Any]) -> list[Item]:
    chosen = known.get(id(structure))
    if chosen is None:
        if len(known) >= MOST_STRUCTURES:
            known.clear()
        types = {(node["node"], node["role"], node["pass"]): node.get("type", "") for node in structure.graph["nodes"]}
        items = [item for item in structure.items if _is_meant(item, types, where)]
        chosen = known[id(structure)] = Chosen(structure, items)
    return list(chosen.items)


def _is_meant(item: Item, types: dict[tuple[str, str, int], str], where: Where) -> bool:
    """By its name; whether there is a gradient or an update is seen when it is asked for."""
    type_ = types.get((item.node, item.role, item.pass_), "")
    one = named(item.node, item.pass_, type_, item.kind, item.module)
    return where.names(one, item.role, item.pass_)


def _look(row: Row, step: tuple[int, str], measured: Measured, number: int) -> Look:
    mine = measured.sample_request == number
    samples = {name: measured.samples[name][mine] for name in SAMPLE} if mine.any() else {}
    whole = {name: float(measured.whole[name][number]) for name in WHOLE}
    item = row.item
    return Look(item.node, item.role, item.pass_, row.of, item.kind, step[0], step[1], whole, samples)
