"""Combined patterns: what they mean, against slow twins, and what they say before a graph is finished."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.selecting.patterns import Pattern, Selector, parse
from endoscope.errors import BadArgument
from tests.analysis.random_graphs import Parents, all_paths, parent_lists

TYPES = ("relu", "conv2d", "add")


@dataclass
class Thing:
    """One operation: matched by patterns, and asked early."""

    number: int
    parents: list[Thing]
    kind: str = "computed"
    older: bool = False

    @property
    def type(self) -> str:
        return TYPES[self.number % 3]

    @property
    def keys(self) -> tuple[str, ...]:
        return (f"{self.type}_{self.number}", *self.modules[-1:])

    @property
    def modules(self) -> tuple[str, ...]:
        return ("net", f"net.{self.number // 3}")

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("computed", "generated")


def things(parents: Parents) -> list[Thing]:
    found: list[Thing] = []
    for number, above in enumerate(parents):
        found.append(Thing(number, [found[p] for p in above]))
    return found


def marked(selector: Selector, parents: Parents) -> set[int]:
    return {number for number, mark in enumerate(selector.mark(things(parents), parents)) if mark}


# ---- meaning -------------------------------------------------------------------------------------

ATOMS = st.sampled_from(
    ["type:relu", "type:*d*", "add_2", "relu_*", "in:net.1", "net.0", "kind:computed", "relu_99", "*"]
)
RELATED = ["child_of", "parent_of", "descendant_of", "ancestor_of", "sibling_of"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} & {})".format, inner, inner),
        st.builds("({} | {})".format, inner, inner),
        st.builds("!{}".format, inner),
        st.builds("{}({})".format, st.sampled_from(RELATED), inner),
    )


EXPRESSIONS = st.recursive(ATOMS, larger, max_leaves=5)

SLOW: dict[str, Callable[[Parents, int, int], bool]] = {
    "child_of": lambda parents, a, b: b in parents[a],
    "parent_of": lambda parents, a, b: a in parents[b],
    "descendant_of": lambda parents, a, b: a != b and any(True for _ in all_paths(parents, b, a)),
    "ancestor_of": lambda parents, a, b: a != b and any(True for _ in all_paths(parents, a, b)),
    "sibling_of": lambda parents, a, b: a != b and bool(set(parents[a]) & set(parents[b])),
}


def slow(selector: Any, parents: Parents, number: int) -> bool:
    """By the meaning of each word, one operation at a time."""
    name = type(selector).__name__
    if name == "Pattern":
        return bool(selector.matches(things(parents)[number]))
    if name == "Every":
        return all(slow(part, parents, number) for part in selector.parts)
    if name == "Either":
        return any(slow(part, parents, number) for part in selector.parts)
    if name == "Not":
        return not slow(selector.inner, parents, number)
    relation = SLOW[selector.relation]
    return any(
        relation(parents, number, other) and slow(selector.inner, parents, other) for other in range(len(parents))
    )


@given(EXPRESSIONS, parent_lists(6))
def test_an_expression_means_what_its_words_mean(text: str, parents: Parents) -> None:
    selector = parse(text)
    assert marked(selector, parents) == {n for n in range(len(parents)) if slow(selector, parents, n)}


@given(EXPRESSIONS, parent_lists(6))
def test_an_early_answer_is_never_taken_back(text: str, parents: Parents) -> None:
    selector = parse(text)
    final = marked(selector, parents)
    for thing in things(parents):
        early = selector.early(thing)
        assert early is None or early == (thing.number in final), (text, thing.number)


@given(EXPRESSIONS, parent_lists(6))
def test_without_relations_one_operation_is_enough(text: str, parents: Parents) -> None:
    selector = parse(text)
    if not selector.related:
        assert marked(selector, parents) == {t.number for t in things(parents) if selector.matches(t)}


@pytest.mark.parametrize("relation", RELATED)
def test_with_relations_it_is_not(relation: str) -> None:
    selector = parse(f"type:relu & {relation}(type:add)")
    assert selector.related
    with pytest.raises(BadArgument, match=rf"'{relation}\(type:add\)' uses relations such as child_of"):
        selector.matches(Thing(0, []))


# ---- early enough to save memory -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("type:relu & child_of(type:conv2d)", False),  # it is an add
        ("type:add & child_of(type:conv2d)", True),
        ("type:add & child_of(type:add)", False),
        ("type:add & child_of(conv2d_1)", None),  # labels come later
        ("type:add & child_of(relu_1)", False),  # but not for other types
        ("type:add & parent_of(type:relu)", None),
        ("type:relu | type:add", True),
        ("type:relu | kind:generated", None),
        ("!type:add", False),
        ("!in:other", True),
        ("in:net.0 & !type:relu", True),
        ("net.0:2", None),
        ("net.5:2", False),
    ],
)
def test_what_is_known_early(text: str, answer: bool | None) -> None:
    conv = Thing(1, [Thing(0, [])])
    assert parse(text).early(Thing(2, [conv])) is answer


def test_plain_patterns_inside_are_listed() -> None:
    assert list(parse("!(a | type:b) & child_of('c (d)')").atoms()) == [
        Pattern("a", "", "a"),
        Pattern("type:b", "type", "b"),
        Pattern("'c (d)'", "", "c (d)"),
    ]
