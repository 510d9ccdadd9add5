"""From a value that was asked for its truth to the test in the source."""

from __future__ import annotations

from typing import Any

import pytest

from endoscope.analysis.branching.conditionals import NOTHING, UNSETTLED, Construct, Unlocated, locate
from tests.analysis.small_recorder import all_tests_of, define, first_test_of, listen, written

# ---- the constructs -----------------------------------------------------------------------------------------------


def test_if_and_else() -> None:
    def f(x):
        if x.mean() > 3:
            y = x * 2
        else:
            y = x + 1
            y = y * y
        return y

    test = first_test_of(f, 5)
    assert (test.kind, test.text, test.asked) == (Construct.IF, "x.mean() > 3", "x.mean() > 3")
    assert [branch.name for branch in test.branches] == ["then", "else"]
    assert written(test, "then") == "y = x * 2"
    assert written(test, "else") == "y = x + 1 y = y * y"
    assert test.leads_to(True) == "then" and test.leads_to(False) == "else"
    assert test.line == f.__code__.co_firstlineno + 1 == test.span.line
    assert test.file == __file__
    assert test.function == "test_if_and_else.<locals>.f"


def test_if_without_else() -> None:
    def f(x):
        if x:
            x = x * 2
        return x

    test = first_test_of(f, 5)
    assert test.text == "x"
    assert test.leads_to(False) == NOTHING
    assert str(test).startswith("if x (") and str(test).endswith("<locals>.f)")


def test_elif_chain_is_one_construct() -> None:
    def f(x):
        if x > 3:
            return x * 1
        elif x > 2:
            return x * 2
        elif x > 1:
            return x * 3
        else:
            return x * 4

    first, second, third = all_tests_of(f, 0)
    assert [t.kind for t in (first, second, third)] == ["if", "elif", "elif"]
    assert first.construct == second.construct == third.construct
    assert [b.name for b in third.branches] == ["then", "elif 1", "elif 2", "else"]
    assert first.branches == third.branches
    assert (first.on_true, second.on_true, third.on_true) == ("then", "elif 1", "elif 2")
    assert (first.on_false, second.on_false, third.on_false) == (UNSETTLED, UNSETTLED, "else")
    assert written(second, "elif 1") == "return x * 2"
    assert written(first, "else") == "return x * 4"


def test_if_inside_else_is_no_elif() -> None:
    def f(x):
        if x > 3:
            return x * 1
        else:
            if x > 2:
                return x * 2
        return x

    outer, inner = all_tests_of(f, 0)
    assert inner.kind == Construct.IF
    assert [b.name for b in inner.branches] == ["then"]
    assert outer.on_false == "else"


def test_ternary() -> None:
    def f(x):
        return x * 2 if x > 0 else x + 1

    test = first_test_of(f, 1)
    assert (test.kind, test.text) == ("ternary", "x > 0")
    assert (written(test, "then"), written(test, "else")) == ("x * 2", "x + 1")


def test_while_with_else() -> None:
    def f(x):
        while x < 3:
            x = x + 1
        else:
            x = x * 2
        return x

    tests = all_tests_of(f, 1)
    assert len(tests) == 3
    assert len(set(tests)) == 1
    test = tests[0]
    assert (test.kind, test.text) == ("while", "x < 3")
    assert (written(test, "body"), written(test, "else")) == ("x = x + 1", "x = x * 2")
    assert (test.on_true, test.on_false) == ("body", "else")


def test_assert() -> None:
    # The test runner rewrites `assert` in this file, so this one is compiled as it stands.
    f = define("def f(x):\n    assert x > 0, f'{x} is bad'\n    return x\n", "<assert>")
    test = first_test_of(f, 1)
    assert (test.kind, test.text) == ("assert", "x > 0")
    assert (test.on_true, test.on_false) == ("passes", "fails")
    assert written(test, "fails") == "f'{x} is bad'"


def test_assert_that_was_rewritten() -> None:
    def f(x):
        assert x > 0
        return x

    test = first_test_of(f, 1)
    assert (test.kind, test.text) == ("assert", "x > 0")


@pytest.mark.parametrize("made", ["[y * 2 for y in xs if y > 0]", "{y * 2 for y in xs if y > 0}"])
def test_comprehensions(made: str) -> None:
    f = define(f"def f(x):\n    xs = [x, x]\n    return {made}\n", "<comprehension>")
    test, again = all_tests_of(f, 1)
    assert test == again
    assert (test.kind, test.text, test.function) == ("comprehension", "y > 0", "f")
    assert written(test, "then") == "y * 2"
    assert (test.on_true, test.on_false) == ("then", NOTHING)


def test_dict_comprehension_and_several_conditions() -> None:
    def f(x):
        return list({y: y * z for y in [x] if y if y > 0 for z in [y, y] if not z < 0}.values())

    first, second, third, fourth = all_tests_of(f, 1)
    assert [t.asked for t in (first, second, third)] == ["y", "y > 0", "z < 0"]
    assert (first.on_true, second.on_true, third.on_true) == (UNSETTLED, "then", "then")
    assert third == fourth and third.leads_to(False) == "then"
    assert written(second, "then") == "y | y * z | [y, y] | not z < 0"


def test_generator_expression() -> None:
    def f(x):
        return sum([y.value for y in (z * 2 for z in [x] if z)])

    assert first_test_of(f, 1).kind == "comprehension"


def test_match_guard() -> None:
    def f(x):
        match 7:
            case int() if x > 3:
                return x * 2
            case y if x:
                return x + y
        return x

    first, second = all_tests_of(f, 1)
    assert (first.kind, first.text, second.text) == ("match", "x > 3", "x")
    assert [b.name for b in first.branches] == ["case 1", "case 2"]
    assert (first.on_true, first.on_false, second.on_false) == ("case 1", UNSETTLED, NOTHING)
    assert written(second, "case 2") == "return x + y"


def test_match_against_values() -> None:
    def f(x):
        match x:
            case 1:
                return x * 2
            case 2:
                return x * 3

    first, second = all_tests_of(f, 2)
    assert (first.text, second.text) == ("1", "2")
    assert first.leads_to(False) == UNSETTLED and second.leads_to(True) == "case 2"


def test_match_over_an_item() -> None:
    def f(x):
        match x.item():
            case 1:
                return x * 2

    test = first_test_of(f, 1)
    assert (test.kind, test.text, test.leads_to(1)) == ("match", "x.item()", UNSETTLED)


def test_for_over_a_range() -> None:
    def f(x):
        for _ in range(x.item()):
            x = x * 2
        return x

    test = first_test_of(f, 2)
    assert (test.kind, test.text, test.asked) == ("for", "range(x.item())", "x.item()")
    assert written(test, "body") == "x = x * 2"


def test_and_or_outside_of_tests() -> None:
    def f(x, y):
        z = x and y * 2
        return z or y + 1

    first, second = all_tests_of(f, 1, 0)
    assert (first.kind, first.text, first.asked) == ("and", "x and y * 2", "x")
    assert (first.leads_to(True), first.leads_to(False)) == ("rest", NOTHING)
    assert written(first, "rest") == "y * 2"
    assert (second.kind, second.leads_to(True), second.leads_to(False)) == ("or", NOTHING, "rest")


def test_not_that_goes_nowhere() -> None:
    def f(x):
        return [not x]

    test = first_test_of(f, 1)
    assert (test.kind, test.text, test.asked, test.branches) == ("not", "not x", "x", ())


def test_chained_comparison() -> None:
    def f(x):
        if (0 + 0) < x < 5:
            x = x * 2
        return 0 < x < 9

    first, second, third = all_tests_of(f, 1)
    assert [t.asked for t in (first, second, third)] == ["0 + 0 < x", "x < 5", "0 < x"]
    assert [t.kind for t in (first, second, third)] == ["if", "if", "comparison"]
    assert (first.leads_to(True), first.leads_to(False)) == (UNSETTLED, NOTHING)
    assert (second.leads_to(True), second.leads_to(False)) == ("then", NOTHING)
    assert (third.leads_to(True), written(third, "rest")) == ("rest", "9")


# ---- which part of a test -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "values", "asked", "outcomes"),
    [
        ("a and b", (1, 1), ["a", "b"], ["unsettled", "then"]),
        ("a and b", (0, 1), ["a"], ["else"]),
        ("a or b", (0, 0), ["a", "b"], ["unsettled", "else"]),
        ("a or b", (1, 0), ["a"], ["then"]),
        ("not a", (1, 0), ["a"], ["else"]),
        ("not (a and b)", (1, 0), ["a", "b"], ["unsettled", "then"]),
        ("not not a", (1, 0), ["a"], ["then"]),
        ("a and b or a > 5", (1, 0), ["a", "b", "a > 5"], ["unsettled", "unsettled", "else"]),
        ("a and (b or a > 0)", (1, 0), ["a", "b", "a > 0"], ["unsettled", "unsettled", "then"]),
        ("True and a > 0", (1, 0), ["a > 0"], ["then"]),
        ("bool(a)", (1, 0), ["bool(a)"], ["then"]),
        ("bool(a > 1)", (1, 0), ["bool(a > 1)"], ["else"]),
        ("a.item() > 3", (4, 0), ["a.item()"], ["then"]),
        ("3 < a.item()", (4, 0), ["a.item()"], ["then"]),
        ("-1 >= a.item()", (-3, 0), ["a.item()"], ["then"]),
        ("not a.item() == 4", (4, 0), ["a.item()"], ["else"]),
        ("a.item() + 1 > 3", (4, 0), ["a.item()"], ["unsettled"]),
        ("a.item() > b.item()", (4, 0), ["a.item()", "b.item()"], ["unsettled", "unsettled"]),
        ("float(a) > 3", (4, 0), ["float(a)"], ["then"]),
        ("abs(a.item()) > 3", (4, 0), ["a.item()"], ["unsettled"]),
        ("any([a, b])", (0, 1), ["any([a, b])"] * 2, ["unsettled", "then"]),
        ("all(z for z in (a, b))", (0, 1), ["all(z for z in (a, b))"], ["else"]),
        ("a in [b, 7]", (1, 1), ["a in [b, 7]"], ["then"]),
        ("a not in [b, 7]", (1, 1), ["a not in [b, 7]"], ["else"]),
        ("(c := a > 0)", (1, 1), ["c := a > 0"], ["then"]),
        ("(a if True else b)", (1, 1), ["a"], ["then"]),
        ("(lambda z: 3)(a) > 2 and b", (1, 1), ["b"], ["then"]),
        ("[9, a][1]", (1, 1), ["[9, a][1]"], ["then"]),
    ],
)
def test_the_asked_part_and_what_it_leads_to(
    condition: str, values: tuple[int, int], asked: list[str], outcomes: list[str]
) -> None:
    text = f"def f(a, b):\n    if {condition}:\n        return a * 2\n    else:\n        return a\n"
    recorder, _ = listen(define(text, f"<{condition}>"), *values)
    tests = [found[0] for found in recorder.located() if isinstance(found, tuple)]
    assert {(t.kind, t.text) for t in tests} == {("if", condition.removeprefix("(").removesuffix(")"))} or (
        {(t.kind, t.text) for t in tests} == {("if", condition)}
    )
    assert [t.asked for t in tests] == asked
    assert [t.leads_to(a.value) for t, a in zip(tests, recorder.asked, strict=True)] == outcomes


def test_a_condition_over_several_lines() -> None:
    def f(x):
        if (
            x  # the first
            and x.mean() > 0
            and (
                x
                .sin()
                .mean()
                .item() > 0
            )
        ):  # fmt: skip
            x = x * 2
        return x

    first, second, third = all_tests_of(f, 1)
    assert {t.text for t in (first, second, third)} == {"x and x.mean() > 0 and (x.sin().mean().item() > 0)"}
    assert [t.asked for t in (first, second, third)] == ["x", "x.mean() > 0", "x.sin().mean().item()"]
    assert first.asked_span.line == first.span.line == second.asked_span.line - 1
    assert third.leads_to(1) == "then"


def test_several_tests_on_one_line() -> None:
    def f(x):
        y = (x * 2 if x > 0 else x) if x < 9 else x; z = x if x == 1 else y  # fmt: skip # noqa: E702
        return y, z

    tests = all_tests_of(f, 1)
    assert [t.asked for t in tests] == ["x < 9", "x > 0", "x == 1"]
    assert [written(t, "else") for t in tests] == ["x", "x", "y"]
    assert len({t.line for t in tests}) == 1


def test_columns_count_bytes() -> None:
    f = define("def f(größe):\n    é = 'ü'; return größe * 2 if größe > 0 else é\n", "<umlauts>")
    test = first_test_of(f, 1)
    assert (test.text, written(test, "then"), written(test, "else")) == ("größe > 0", "größe * 2", "é")


def test_nested_ifs() -> None:
    def f(x):
        if x > 0:
            if x > 1:
                x = x * 2
            elif x > 0.5:
                x = x * 3
        return x

    outer, inner, third = all_tests_of(f, 1)
    assert outer.branch("then").spans[0].covers(inner.construct)  # type: ignore[union-attr]
    assert (inner.kind, third.kind) == ("if", "elif")


# ---- values that are kept first -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("ok = bool(x)\n    y = 1\n    if ok: pass", ["if"]),
        ("ok = bool(x)\n    if not ok and y: pass", ["if"]),
        ("ok: bool = bool(x)\n    while ok: break", ["while"]),
        ("n = x.item()\n    if n > 3: pass", ["if"]),
        ("n = float(x)\n    m = n / 2\n    if m > 3: pass", ["if"]),
        ("n = 0\n    n += x.item()\n    return 1 if n else 2", ["ternary"]),
        ("if (n := x.item()) > 3: pass\n    assert n == 0", ["if", "assert"]),
        ("ok = bool(x)\n    if ok: pass\n    if ok: pass\n    ok = 3\n    if ok: pass", ["if", "if"]),
        ("ok = bool(x) and y\n    if ok: pass", ["and", "if"]),
        ("ok = True\n    if not y: ok = bool(x)\n    if ok: pass", ["if"]),
        ("ok = bool(x)\n    if y: ok = 3\n    if ok: pass", ["if"]),
        ("if not y: ok = bool(x)\n    else:\n        if ok: pass", []),
        ("ok = bool(x)\n    ok = y\n    if ok: pass", []),
        ("ok = bool(x)\n    ok = not ok\n    if ok: pass", ["if"]),
        ("ok = bool(x)\n    [ok for ok in (1, 2) if ok]", []),
        ("ok = bool(x)\n    return [z for z in (1, 2) if ok]", ["comprehension"]),
        ("go = 1\n    while go:\n        y = 1\n        go = bool(x)", ["while"]),
        ("go = 1\n    for _ in (1,):\n        if go: pass\n        go = bool(x)\n        y = go", ["if"]),
        ("go = 1\n    for _ in (1,):\n        if go: pass\n        go = bool(x)\n        go = 3", []),
        ("go = 1\n    for _ in (1,):\n        go = 2\n        if go: pass\n        go = bool(x)", []),
        ("n = max(x.item(), 1)\n    if n > 3: pass", ["if"]),
        ("n = y if y else x.item()\n    if n == 0: pass", ["if"]),
        ("match y:\n        case 0: ok = bool(x)\n        case 1 if ok: pass", []),
        ("def g():\n        return ok\n    ok = bool(x)\n    if ok: pass", ["if"]),
        ("y = x * x.item()\n    if y.sin().value: pass", []),
    ],
)
def test_names_are_followed_within_the_function(body: str, kinds: list[str]) -> None:
    recorder, _ = listen(define(f"def f(x, y=0):\n    {body}\n", f"<{body}>"), 0)
    found = recorder.located()[0]
    assert [str(t.kind) for t in found] == kinds if isinstance(found, tuple) else kinds == []


def test_a_kept_value_says_so_and_leads_to_its_branch() -> None:
    def f(x):
        small = not x > 3
        if small:
            x = x * 2
        return x

    test = first_test_of(f, 1)
    assert (test.kind, test.asked, test.by_name) == ("if", "small", True)
    assert test.leads_to(False) == "then"  # x > 3 is False, so small is True


def is_big(x):
    return x.item() > 3


def is_small(x):
    ok = not is_big(x)
    return ok


def test_a_returned_value_is_looked_for_in_the_callers() -> None:
    def f(x):
        if is_small(x):
            return x * 2
        return x

    recorder, _ = listen(f, 1)
    (found,) = recorder.located()
    assert isinstance(found, tuple)
    assert (found[0].kind, found[0].text, found[0].function) == ("if", "is_small(x)", f.__qualname__)
    assert (found[0].leads_to(1), found[0].leads_to(5)) == ("then", NOTHING)


# ---- values that steer nothing ------------------------------------------------------------------------------------


class Holder:
    flag: Any = None


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ok = bool(x)", "its value is kept in ok, which no test in f uses"),
        ("self.flag = bool(x)", "its value goes into self.flag, which is not followed"),
        ("a = b, c = bool(x), 3", "its value goes into b, c, which is not followed"),
        ("print(bool(x), end='')", "its value is handed to print()"),
        ("bool(x)", "its value steers nothing in the code around it"),
        ("max(x, x)", "its value is used inside max(), which is not in your source code"),
        ("if max(x, x): pass", "its value is used inside max(), which is not in your source code"),
        ("[1, 2][x.item()]", "its value steers nothing in the code around it"),
        ("return bool(x)", "its value steers nothing in the code around it"),
        ("y = x * x.item()", "its value is kept in y, which no test in f uses"),
        ("y = list((x.item(), 3))", "its value goes into y, which is not followed"),
    ],
)
def test_reasons(statement: str, reason: str) -> None:
    f = define(f"def f(self, x):\n    {statement}\n", f"<{statement}>")

    def call(x):
        f(Holder(), x)

    found = listen(call, 0)[0].located()[0]
    assert isinstance(found, Unlocated), found
    assert found.reason == reason


def test_a_returned_value_without_known_callers() -> None:
    recorder, _ = listen(is_small, 1)
    (value,) = recorder.asked
    found = locate(value.code, value.instruction, leaving="item")
    assert isinstance(found, Unlocated)
    assert found.reason == "its value is returned by is_big, and the code that tests it is not known"
