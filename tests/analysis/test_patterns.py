"""The pattern language."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.selecting.patterns import Pattern, nearest, parse
from endoscope.errors import BadArgument


@dataclass
class Thing:
    """What a pattern looks at."""

    type: str = "relu"
    kind: str = "computed"
    keys: tuple[str, ...] = ("relu_2_5", "relu_2", "relu_2_5:1", "encoder.2", "encoder.2:1")
    modules: tuple[str, ...] = ("encoder", "encoder.2")


RELU = Thing()


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("relu_2", True),
        ("relu_2_5", True),
        ("relu_2_5:1", True),
        ("relu_2:1", False),
        ("relu_1", False),
        ("relu_*", True),
        ("r?lu_2", True),
        ("*", True),
        ("encoder.2", True),
        ("encoder.2:1", True),
        ("encoder.2:*", True),
        ("encoder", False),
        ("encoder*", True),
        ("encoder?2", True),
        ("ENCODER.2", False),
        ("type:relu", True),
        ("type:re*", True),
        ("type:conv*", False),
        ("in:encoder", True),
        ("in:encoder.2", True),
        ("in:encoder.*", True),
        ("in:decoder", False),
        ("kind:computed", True),
        ("kind:in*", False),
        ("  type:relu  ", True),
        ("type: relu", True),
    ],
)
def test_what_matches(text: str, matches: bool) -> None:
    assert parse(text).matches(RELU) is matches


@given(st.text("ab.*?", min_size=1, max_size=6), st.text("ab.", max_size=6))
def test_stars_and_question_marks_mean_what_they_mean_in_a_shell(body: str, key: str) -> None:
    assert Pattern(body, "", body).matches(Thing(keys=(key,))) == fnmatch.fnmatchcase(key, body)


@pytest.mark.parametrize("body", ["a[b]", "a+b", "^a$", "a\\b", "a b", "a!b", "don't"])
def test_other_characters_stand_for_themselves(body: str) -> None:
    assert parse(body).matches(Thing(keys=(body,)))
    assert not parse(body).matches(Thing(keys=("ab", "a", "b")))


@pytest.mark.parametrize("text", ["", "   ", None, 3, ["type:relu"]])
def test_what_is_no_pattern(text: object) -> None:
    with pytest.raises(BadArgument, match="non-empty string"):
        parse(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["tipe:relu", "module:encoder", "kinds:input"])
def test_an_unknown_prefix_names_the_known_ones(text: str) -> None:
    with pytest.raises(BadArgument, match=r"none of type:, in:, kind:"):
        parse(text)


@pytest.mark.parametrize("text", ["relu_2:1", "relu:2", "fc:3", "fc:*", "encoder.2:12"])
def test_a_number_behind_a_colon_is_a_pass(text: str) -> None:
    assert parse(text) == Pattern(text, "", text)


LABELS = ("relu_1_0", "relu_1", "relu_12_30:2", "conv2d_1_4", "conv2d_1", "max_pool2d_2_7")


@pytest.mark.parametrize(
    "body", ["relu_1", "relu_*", "conv2d_1_4", "*_1", "r*", "max_pool2d_2", "max_pool?d_2", "relu_1*"]
)
def test_a_type_is_never_ruled_out_too_early(body: str) -> None:
    """`may_match_type` is asked before labels exist: it may say yes too often, never no too often."""
    for label in LABELS:
        type_ = next(t for t in ("relu", "conv2d", "max_pool2d") if label.startswith(t))
        if parse(body).matches(Thing(keys=(label,))):
            assert parse(body).may_match_type(type_), (body, label)


def test_a_type_pattern_rules_out_other_types() -> None:
    assert parse("type:conv*").may_match_type("conv2d")
    assert not parse("type:conv*").may_match_type("relu")
    assert not parse("relu_3").may_match_type("linear")
    assert not parse("encoder.2").may_match_type("relu")


@given(st.lists(st.text("abcd_1", min_size=1, max_size=5), min_size=1, max_size=9), st.text("abcd_1", min_size=1))
def test_nearest_names_exist_and_come_once(known: list[str], wanted: str) -> None:
    found = nearest(wanted, known, 3)
    assert 1 <= len(found) <= 3
    assert set(found) <= set(known)
    assert len(set(found)) == len(found)
    if wanted in known:
        assert found[0] == wanted


def test_nearest_finds_what_was_meant() -> None:
    known = ["linear_1_1", "relu_1_2", "linear_2_3", "encoder.fc", "input_1_0"]
    assert nearest("linaer_1_1", known)[0] == "linear_1_1"
    assert "relu_1_2" in nearest("relu_9_9", known)
    assert nearest("encoder.fx", known)[0] == "encoder.fc"


# ---- combinations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("type:relu & in:encoder", True),
        ("type:relu&in:encoder", True),
        ("type:relu & in:decoder", False),
        ("in:decoder | type:relu", True),
        ("type:add | in:decoder | relu_2", True),
        ("!type:relu", False),
        ("! type:add", True),
        ("!!type:relu", True),
        ("type:add & type:relu | type:relu", True),  # & binds tighter
        ("type:relu | type:relu & type:add", True),
        ("type:add & (type:relu | type:relu)", False),
        ("!type:add & type:relu", True),  # ! binds tightest
        ("!(type:add | type:relu)", False),
        ("( ( relu_2 ) )", True),
        ("relu_2:1 | relu_2_5:1", True),
        ("'relu_2' & \"encoder.2\"", True),
        ("type:'relu' & in:\"encoder\"", True),
        ("'relu_*'", True),
    ],
)
def test_what_combinations_match(text: str, matches: bool) -> None:
    assert parse(text).matches(RELU) is matches


@pytest.mark.parametrize("name", ["a|b", "a & b", "(a)", "f(x)", "!a", "type:a"])
def test_quotes_take_the_meaning_from_a_name(name: str) -> None:
    assert parse(f"'{name}'").matches(Thing(keys=(name,)))
    assert parse(f'in:"{name}"').matches(Thing(modules=(name,)))
    assert not parse(f"!'{name}'").matches(Thing(keys=(name,)))


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("type:relu &", "a pattern is expected here, and the text ends", 11),
        ("& type:relu", "a pattern is expected here, not '&'", 0),
        ("a | | b", "a pattern is expected here, not '|'", 4),
        ("child_of()", r"a pattern is expected here, not '\)'", 9),
        ("(type:relu", r"this \( is never closed", 0),
        ("a & child_of(b", r"this \( is never closed", 12),
        ("type:relu) & a", r"there is no \( that this \) closes", 9),
        ("type:relu type:add", "& or | is missing here".replace("|", r"\|"), 9),
        ("type:relu child_of(a)", r"& or \| is missing here", 9),
        ("(a) b", r"& or \| is missing here", 4),
        ("(a b) (c)", r"& or \| is missing here", 6),
        ("'a", "this ' is never closed", 0),
        ("x & type:'a", "this ' is never closed", 9),
        ("childof(a)", "'childof' is no relation, did you mean 'child_of'", 0),
        ("a & nephew_of(b)", "'nephew_of' is no relation", 4),
        ("!" * 101 + "a", "more than 100 levels", 101),
    ],
)
def test_what_cannot_be_read_is_marked(text: str, what: str, place: int) -> None:
    with pytest.raises(BadArgument, match=what) as caught:
        parse(text)
    lines = str(caught.value).splitlines()
    shown = next(i for i, line in enumerate(lines) if line == f"    {text}")
    assert lines[shown + 1] == "    " + " " * place + "^"
    assert "child_of(type:relu)" in lines[-1]


@pytest.mark.parametrize("text", ["type:", "in: ", "''", "a & ''", "kind:''"])
def test_a_pattern_that_names_nothing(text: str) -> None:
    with pytest.raises(BadArgument, match="names nothing"):
        parse(text)


def test_thousands_of_alternatives_are_no_problem() -> None:
    text = " | ".join(f"relu_{i}" for i in range(5000))
    assert parse(text).matches(Thing(keys=("relu_4999",)))
    assert not parse(text).matches(Thing(keys=("relu_5000",)))


@pytest.mark.parametrize(
    ("body", "type_"), [("atleast_1d_1", "atleast_1d"), ("atleast_1d_1_4", "atleast_1d"), ("orphan_add_2", "add")]
)
def test_types_with_numbers_and_orphans_are_not_ruled_out(body: str, type_: str) -> None:
    assert parse(body).early(Early(type_)) is None
    assert parse(body).early(Early("relu")) is False


@dataclass
class Early:
    """What is known of an operation when it has just run."""

    type: str
    kinds: tuple[str, ...] = ("computed",)
    modules: tuple[str, ...] = ()
    parents: tuple[Early, ...] = ()
    older: bool = False
