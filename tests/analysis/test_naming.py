"""Labels: `{type}_{n-th of its type}_{n-th of all}`, and passes of layers with equal keys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.recurrence.naming import name_layers


def slow_labels(types: list[str], keys: list[object]) -> list[tuple[str, int, int]]:
    """Label, pass and number of passes of every operation, counted anew for each."""
    own = [keys[i] if keys[i] is not None else ("alone", i) for i in range(len(types))]
    firsts = [own.index(key) for key in own]
    layers = sorted(set(firsts))
    found = []
    for position, first in enumerate(firsts):
        nth = sum(types[other] == types[first] for other in layers if other <= first)
        label = f"{types[first]}_{nth}_{layers.index(first)}"
        found.append((label, firsts[: position + 1].count(first), firsts.count(first)))
    return found


OPERATIONS = st.lists(st.tuples(st.sampled_from(["relu", "linear", "add"]), st.sampled_from([None, None, "a", "b"])))


@given(OPERATIONS)
def test_against_counting_anew(operations: list[tuple[str, str | None]]) -> None:
    types = [type_ for type_, _ in operations]
    keys = [None if key is None else (type_, key) for type_, key in operations]
    names = name_layers(types, keys)
    found = [
        (names.label[layer], pass_, names.passes[layer]) for layer, pass_ in zip(names.layer, names.pass_, strict=True)
    ]
    assert found == slow_labels(types, list(keys))


@given(OPERATIONS)
def test_labels_are_unique_and_the_short_form_is_their_beginning(operations: list[tuple[str, str | None]]) -> None:
    names = name_layers([t for t, _ in operations], [None] * len(operations))
    assert len(set(names.label)) == len(names.label)
    assert len(set(names.short)) == len(names.short)
    assert all(label == f"{short}_{i}" for i, (label, short) in enumerate(zip(names.label, names.short, strict=True)))


def test_the_example_of_the_paper() -> None:
    types = ["input", "conv2d", "relu", "conv2d", "relu"]
    assert name_layers(types, [None] * 5).label == ["input_1_0", "conv2d_1_1", "relu_1_2", "conv2d_2_3", "relu_2_4"]


def test_a_recurrent_layer_keeps_one_number() -> None:
    names = name_layers(["input", "linear", "mul", "linear", "mul"], [None, "w", None, "w", None])
    assert names.label == ["input_1_0", "linear_1_1", "mul_1_2", "mul_2_3"]
    assert names.layer == [0, 1, 2, 1, 3]
    assert names.pass_ == [1, 1, 1, 2, 1]
    assert names.passes == [1, 2, 1, 1]


def test_nothing() -> None:
    names = name_layers([], [])
    assert (names.layer, names.label) == ([], [])
