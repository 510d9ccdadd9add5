"""The language of own anomalies: what can be said, what is refused and how, and what a condition computes."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from endoscope.analysis.user_rules.rules import named, read_rule, read_where
from endoscope.errors import BadArgument


@pytest.mark.parametrize(
    ("text", "where", "condition"),
    [
        ("encoder.2: abs_max > 1", "encoder.2", "abs_max > 1"),
        ("encoder.2:1: 0 < std < 1e-3", "encoder.2:1", "0 < std < 1e-3"),
        ("type:relu: zeros / count > 0.9", "type:relu", "zeros / count > 0.9"),
        ("in:a | kind:output: max>1", "in:a | kind:output", "max>1"),
        ("'a: b': max > 1", "'a: b'", "max > 1"),
        ("type: max > 1", "type", "max > 1"),
        ("* of=gradient:my_loss: nans > 0", "* of=gradient:my_loss", "nans > 0"),
    ],
)
def test_a_rule_is_split_at_its_colon(text: str, where: str, condition: str) -> None:
    rule = read_rule(text)
    assert (rule.where.text, rule.condition.text) == (where, condition)


def test_addresses_are_those_of_reading() -> None:
    where = read_rule("encoder.* of=gradient role=\"digit 3\" pass_=2 type='long inputs': norm > 1").where
    assert (where.of, where.role, where.pass_, where.type) == ("gradient", "digit 3", 2, "long inputs")
    one = named("encoder.2", 2, "linear", "computed", "encoder.2")
    assert where.selects(one, "gradient:loss", "digit 3", 2)
    assert not where.selects(one, "value", "digit 3", 2)
    assert not where.selects(one, "gradient:loss", "digit 4", 2)
    assert not where.selects(one, "gradient:loss", "digit 3", 1)


@pytest.mark.parametrize(
    ("of", "meant"),
    [
        ("value", {"value", "parameter"}),
        ("gradient", {"gradient:a", "gradient:b"}),
        ("gradient:a", {"gradient:a"}),
        ("update", {"update"}),
        ("parameter", {"parameter"}),
    ],
)
def test_what_of_means(of: str, meant: set[str]) -> None:
    where = read_where(f"* of={of}")
    assert {one for one in ("value", "parameter", "update", "gradient:a", "gradient:b") if where.may_be(one)} == meant


def test_patterns_look_at_names_types_kinds_and_modules() -> None:
    one = named("encoder.2.fc", 1, "linear", "computed", "encoder.2.fc")
    for text in (
        "encoder.2.fc",
        "encoder.*",
        "type:lin*",
        "in:encoder",
        "kind:computed & !type:relu",
        "encoder.2.fc:1",
    ):
        assert read_where(text).selects(one, "value", "", 1), text
    for text in ("encoder", "type:relu", "in:decoder", "encoder.2.fc:2"):
        assert not read_where(text).selects(one, "value", "", 1), text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("encoder.2 abs_max > 1", "has no colon"),
        ("e: abs_mx > 1", "no statistic 'abs_mx' of the whole tensor, did you mean 'abs_max'"),
        ("e: sample.q99 > 1", "no statistic 'q99' of a single sample"),
        ("e: abs_max >", "cannot be read from here on"),
        ("e: abs_max", "a comparison such as abs_max > 1 is expected"),
        ("e: 1 > 2", "one side of a comparison has to be a statistic"),
        ("e: max > 1/0", "divides by zero"),
        ("e: max > True", "True is no number"),
        ("e: max > 'a'", "'a' is no number"),
        ("e: max in q01", "compared by > >= < <= == !="),
        ("e: (max > 1) & (min < 0)", "write and, or, not"),
        ("e: __import__('os') > 1", "a number, a statistic"),
        ("e: max.real > 1", "a number, a statistic"),
        ("e: max ** 2 > 1", "a number, a statistic"),
        ("e: ", "the text ends"),
        ("e: " + "not " * 100 + "max > 1", "levels inside each other"),
        ("e: " + "max > 1 and " * 500 + "max > 1", "more than 2000 characters"),
        ("e of=grad: max > 1", "of=grad is none of value, gradient"),
        ("e pas=1: max > 1", "pas= is none of of=, role=, pass=, type="),
        ("e of=value of=update: max > 1", "of= is said twice"),
        ("e pass=0: max > 1", "They count from 1"),
        ("child_of(e): max > 1", "uses relations such as child_of"),
        ("(e: max > 1", "this \\( is never closed"),
        (5, "A rule is a text such as 'encoder.2: abs_max > 1', not 5"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadArgument, match=message):
        read_rule(text)


def test_the_place_is_marked() -> None:
    with pytest.raises(BadArgument) as caught:
        read_rule("encoder: abs_max > 1 and medn < 2")
    lines = str(caught.value).splitlines()
    assert lines[1].index("medn") == lines[2].index("^")


def test_what_a_condition_needs() -> None:
    condition = read_rule("e: sample.norm > 2 * norm and 0 < q99").condition
    assert (condition.statistics, condition.sample_statistics, condition.per_sample) == (
        ("norm", "q99"),
        ("norm",),
        True,
    )


def test_samples_and_wholes_combine() -> None:
    condition = read_rule("e: sample.norm > 2 * norm or not abs(mean) < 3").condition
    numbers = {"sample.norm": np.array([1.0, 5.0, np.nan]), "norm": np.array([2.0]), "mean": np.array([-1.0])}
    assert condition.holds(numbers).tolist() == [False, True, False]
    assert condition.holds(numbers | {"mean": np.array([-4.0])}).tolist() == [True, True, True]


def test_a_number_that_is_not_there_is_neither_equal_nor_unequal() -> None:
    nan = {"mean": np.array([np.nan])}
    for sign in (">", ">=", "<", "<=", "==", "!="):
        assert not read_rule(f"e: mean {sign} 1").condition.holds(nan).any()


# ---- against Python itself ------------------------------------------------------------------------------------------

_NUMBERS = st.one_of(st.integers(-5, 5).map(str), st.sampled_from(["mean", "std", "max", "0.5", "1e-3"]))


@st.composite
def _sums(draw: st.DrawFn) -> str:
    parts = draw(st.lists(_NUMBERS, min_size=1, max_size=3))
    signs = draw(st.lists(st.sampled_from([" + ", " - ", " * "]), min_size=len(parts) - 1, max_size=len(parts) - 1))
    text = "".join(itertools.chain(*itertools.zip_longest(parts, signs, fillvalue="")))
    return draw(st.sampled_from([text, f"({text})", f"-({text})", f"abs({text})"]))


@st.composite
def _conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth == 0 or draw(st.booleans()):
        return f"mean + {draw(_sums())} {draw(st.sampled_from(['<', '<=', '>', '>=', '==', '!=']))} {draw(_sums())}"
    left, right = draw(_conditions(depth - 1)), draw(_conditions(depth - 1))
    return draw(st.sampled_from([f"({left}) and ({right})", f"({left}) or ({right})", f"not ({left})"]))


@given(_conditions(), st.lists(st.floats(-4, 4), min_size=3, max_size=3))
def test_conditions_mean_what_python_means(text: str, values: list[float]) -> None:
    numbers = dict(zip(("mean", "std", "max"), values, strict=True))
    expected = bool(eval(text, {"__builtins__": {"abs": abs}}, numbers))
    found = read_rule(f"e: {text}").condition.holds({name: np.array([value]) for name, value in numbers.items()})
    assert bool(found[0]) is expected and not math.isnan(found[0])
