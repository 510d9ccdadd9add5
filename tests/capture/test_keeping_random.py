"""Random patterns: what is kept while a model runs is what the finished trace selects, with the right values."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import endoscope
from endoscope.errors import NothingMatches

X = torch.rand(3, 4)


class Mixed(nn.Module):
    """In-place calls, views, several outputs, modules that hand on, shared and nested ones, constants."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(4, 4), nn.Identity(), nn.ReLU(inplace=True))
        self.shared = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.shared(self.block(x))
        first, second = y.chunk(2, dim=1)
        first = first + torch.ones(2)
        z = self.shared(torch.cat([first, second], 1))
        row = z[0]
        row.mul_(2)
        torch.zeros(1).add_(1)
        return z.sum(), second.relu()


MODEL = Mixed()
ATOMS = st.sampled_from(
    """type:relu type:linear type:* type:c* in:block in:shared block block.1 block.? shared shared:2 relu_1 relu_* add_1
    kind:computed kind:generated kind:parameter kind:output orphan_add_1 shared.weight * linear_1:1 mul_1""".split()
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    relations = st.sampled_from(["child_of", "parent_of", "descendant_of", "ancestor_of", "sibling_of"])
    return st.one_of(
        st.builds("({} & {})".format, inner, inner),
        st.builds("({} | {})".format, inner, inner),
        st.builds("!{}".format, inner),
        st.builds("{}({})".format, relations, inner),
    )


@settings(max_examples=80, deadline=None)
@given(st.recursive(ATOMS, larger, max_leaves=4))
def test_kept_is_what_is_selected(pattern: str) -> None:
    full = endoscope.trace(MODEL, X)
    try:
        expected = {op.label for op in full.graph.select(pattern)}
        kept = endoscope.trace(MODEL, X, save=pattern)
    except NothingMatches:
        return
    assert {op.label for op in kept.everything() if op.kept} == expected
    for label in expected:
        for value, other in zip(kept[label].outputs, full[label].outputs, strict=True):
            assert torch.equal(value, other), label
