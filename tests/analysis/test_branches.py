"""Which branch ran, and which operations belong to a test and to its branch."""

from __future__ import annotations

from endoscope.analysis.branching.branches import Asked, Ran, branches
from endoscope.analysis.branching.conditionals import NOTHING, Unlocated
from tests.analysis.decisions_as_text import tell, told
from tests.analysis.small_recorder import Block, SmallRecorder, define, listen


def test_the_example_of_the_paper() -> None:
    def f(x):
        y = x * 7
        if (y - 5).mean() > 3:
            y = y * 2
        else:
            y = y + 1
        return y.sin()

    recorder, out = listen(f, 5)
    (found,) = recorder.decisions(out)
    assert (found.branch, found.value, found.settled, found.nth) == ("then", True, True, 1)
    assert recorder.named(found.steering) == "gt"
    assert recorder.named(found.test_ops) == "sub mean gt"
    assert recorder.named(found.starts) == "sub"  # where the bold IF stands
    assert recorder.named(found.branch_ops) == "mul"
    assert found.node == 5  # input, mul, sub, mean, gt had been recorded
    assert str(found).startswith("if (y - 5).mean() > 3 (") and str(found).endswith(": True -> then")
    assert told(f, 0) == ["(y - 5).mean() > 3: False -> else; sub mean gt | add"]


def test_a_test_whose_value_reaches_the_output_has_no_operations_of_its_own() -> None:
    def f(x):
        big = x > 3
        if big:
            x = x * 2
        return x, big

    recorder, out = listen(f, 5)
    (found,) = recorder.decisions(out)
    assert (recorder.named(found.steering), found.test_ops, found.starts) == ("gt", (), ())
    assert recorder.named(found.branch_ops) == "mul"


def test_no_else() -> None:
    def f(x):
        if x > 3:
            x = x * 2
        return x + 1

    assert told(f, 1) == ["x > 3: False -> nothing; gt |"]


def test_elif_chains_say_which_branch_ran_at_last() -> None:
    def f(x):
        if x > 3:
            y = x * 1
        elif x > 2:
            y = x + 2
        elif x > 1:
            y = x - 3
        else:
            y = x.sin()
        return y * 9

    recorder, out = listen(f, 0)
    found = recorder.decisions(out)
    assert [d.branch for d in found] == ["else"] * 3
    assert [d.settled for d in found] == [False, False, True]
    assert [recorder.named(d.branch_ops) for d in found] == ["sin"] * 3
    assert [d.branch for d in SmallRecorder.decisions(*listen(f, 2.5))] == ["elif 1", "elif 1"]
    assert [d.branch for d in SmallRecorder.decisions(*listen(f, 1.5))] == ["elif 2"] * 3
    assert [d.branch for d in SmallRecorder.decisions(*listen(f, 7))] == ["then"]


def test_a_part_that_no_tensor_answers_is_judged_by_what_is_heard() -> None:
    def f(x, kind):
        if x > 3 and kind.value == "a":
            x = x * 2
        elif kind.value == "b":
            x = x - 1
        elif kind.value == "c":
            pass
        else:
            x = x + 1
        return x.sin()

    def run(kind: str, x: int = 5) -> str:
        return told(f, x, kind)[0].partition(" -> ")[2]

    assert run("a") == "then; gt | mul"
    assert run("b") == "elif 1; gt | sub"
    assert run("b", 0) == "elif 1; gt | sub"
    assert run("c") == "unknown; gt |"
    assert run("d") == "else; gt | add"


def test_and_or_in_a_test() -> None:
    def f(x, y):
        if x > 0 and y.sin() > 0:
            x = x * 2
        return x

    assert told(f, 1, 1) == ["x > 0: True -> then; gt | mul", "y.sin() > 0: True -> then; sin gt | mul"]
    assert told(f, 1, 0) == ["x > 0: True -> nothing; gt |", "y.sin() > 0: False -> nothing; sin gt |"]
    assert told(f, 0, 1) == ["x > 0: False -> nothing; gt |"]


def test_and_outside_of_a_test() -> None:
    def f(x, y):
        z = x and y * 2
        return z + 1

    assert told(f, 1, 1) == ["x: True -> rest; | mul"]
    assert told(f, 0, 1) == ["x: False -> nothing; |"]


def test_values_that_one_place_asks_one_after_the_other() -> None:
    def f(x, y):
        if any(z > 3 for z in (x, y)):
            x = x * 2
        if not all([x, y]):
            x = x + 1
        return x.sin()

    def outcomes(x: int, y: int) -> list[str]:
        return [line.partition(": ")[2].partition(";")[0] for line in told(f, x, y)]

    assert outcomes(1, 5) == ["False -> then", "True -> then", "True -> nothing", "True -> nothing"]
    assert outcomes(1, 0) == ["False -> nothing", "False -> nothing", "True -> then", "False -> then"]


def test_while_gives_one_decision_per_evaluation() -> None:
    def f(x):
        while x.mean() < 3:
            x = x + 1
            x = x.sin()
        return x * 2

    recorder, out = listen(f, 1)
    found = recorder.decisions(out)
    assert [tell(recorder, d) for d in found] == [
        "x.mean() < 3: True -> body; mean lt | add sin",
        "x.mean() < 3: True -> body; mean lt | add sin",
        "x.mean() < 3: False -> nothing; mean lt |",
    ]
    assert [d.nth for d in found] == [1, 2, 3]
    assert found[0].branch_ops[-1] < found[1].branch_ops[0]


def test_while_over_a_sum_that_serves_only_the_test() -> None:
    def f(x):
        total = x
        while total < 4:
            total = total + 1
        return x * 2

    assert told(f, 2) == [
        "total < 4: True -> body; lt | add",
        "total < 4: True -> body; add lt | add",
        "total < 4: False -> nothing; add lt |",
    ]


def test_while_that_is_left_by_break_and_continue() -> None:
    def f(x):
        while True:
            if x > 5:
                break
            if x > 2:
                x = x + 3
                continue
            x = x + 1
        return x * 2

    assert [line.partition(": ")[2] for line in told(f, 2)] == [
        "False -> nothing; gt |",
        "False -> nothing; gt |",
        "False -> nothing; gt |",
        "True -> then; gt | add",
        "True -> then; gt |",
    ]


def test_for_over_a_number() -> None:
    def f(x, n):
        for _ in range(n.item()):
            x = x + 1
        return x * 2

    assert told(f, 0, 2) == ["n.item(): 2 -> body; | add add"]
    assert told(f, 0, 0) == ["n.item(): 0 -> unknown; |"]


def test_nested_ifs() -> None:
    def f(x):
        if x > 0:
            x = x + 1
            if x > 100:
                x = x * 2
            else:
                x = x.sin()
            x = x - 1
        return x.mean()

    assert told(f, 1) == ["x > 0: True -> then; gt | add gt sin sub", "x > 100: False -> else; gt | sin"]


def test_if_inside_a_loop() -> None:
    def f(x):
        for _ in range(3):
            if x > 1:
                x = x * 2
            x = x + 1
        return x

    recorder, out = listen(f, 1)
    found = recorder.decisions(out)
    assert [(d.nth, d.branch, recorder.named(d.branch_ops)) for d in found] == [
        (1, NOTHING, ""),
        (2, "then", "mul"),
        (3, "then", "mul"),
    ]


def gate(x):
    if x > 3:
        return x * 2
    return x


def test_early_return_ends_the_branch() -> None:
    def f(x):
        y = gate(x)
        return y.sin() + 1

    assert told(f, 5) == ["x > 3: True -> then; gt | mul"]


def test_a_function_that_asks_twice() -> None:
    def choose(test, x):
        if test:
            return x * 2
        return x

    def f(x):
        big = x > 3
        return choose(big, choose(big, x))

    assert told(f, 5) == ["test: True -> then; gt | mul", "test: True -> then; | mul"]


def test_ternary_and_lambda() -> None:
    def f(x):
        pick = lambda z: z * 2 if z > 0 else z + 1  # noqa: E731
        y = pick(x)
        return pick(y - 9) * y

    assert told(f, 1) == ["z > 0: True -> then; gt | mul", "z > 0: False -> else; gt | add"]


def test_comprehension() -> None:
    def f(x):
        ys = [y.sin() * 2 for y in (x, x - 9, x + 1) if y > 0]
        return ys[0] + ys[1]

    assert told(f, 1) == [
        "y > 0: True -> then; gt | sin mul",
        "y > 0: False -> nothing; sub gt |",  # y - 9 serves nothing else
        "y > 0: True -> then; gt | sin mul",
    ]


def test_comprehension_after_a_branch_is_not_in_it() -> None:
    def f(x):
        if x > 0:
            x = x * 2
        return [y.sin() for y in (x, x)]

    assert told(f, 1) == ["x > 0: True -> then; gt | mul"]


def test_match_and_assert() -> None:
    source = """
        def f(x):
            assert x > 0, "positive"
            match 3:
                case n if x > n:
                    return x * 2
                case n if x > 1:
                    return x + 2
    """
    f = define("\n".join(line[8:] for line in source.splitlines()), "<match>")
    assert told(f, 2) == [
        "x > 0: True -> passes; gt |",
        "x > n: False -> case 2; gt | add",
        "x > 1: True -> case 2; gt | add",
    ]


# ---- values that are kept first -----------------------------------------------------------------------------------


def test_a_kept_bool() -> None:
    def f(x):
        big = bool(x > 3)
        y = x + 1
        if big:
            y = y * 2
        else:
            y = y - 1
        return y.sin()

    assert told(f, 5) == ["big: True -> then; gt | mul"]
    assert told(f, 0) == ["big: False -> else; gt | sub"]


def test_a_kept_bool_at_the_end_of_a_loop() -> None:
    def f(x):
        go = True
        while go:
            x = x + 1
            go = bool(x < 3)
        return x.sin()

    assert told(f, 1) == ["go: True -> body; lt | add lt", "go: False -> nothing; lt |"]


def test_a_kept_number_and_two_tests() -> None:
    def f(x):
        n = x.item()
        if n > 3:
            x = x * 2
        limit = 4
        if n > limit:
            x = x + 1
        return x.sin()

    assert told(f, 5) == ["n: 5 -> then; | mul", "n: 5 -> then; | add"]
    assert told(f, 4) == ["n: 4 -> then; | mul", "n: 4 -> unknown; |"]


def is_big(x):
    return bool(x > 3)


def test_a_bool_from_a_helper_function() -> None:
    def f(x):
        if is_big(x):
            x = x * 2
        return x.sin()

    assert told(f, 5) == ["is_big(x): True -> then; gt | mul"]
    assert told(f, 1) == ["is_big(x): False -> nothing; gt |"]


def test_a_bool_from_a_module() -> None:
    small = Block(lambda x: not x > 3)

    def f(x):
        if small(x):
            x = x * 2
        return x.sin()

    assert told(f, 1) == ["small(x): False -> then; gt | mul"]


def stop(x, limit):
    return bool(x > limit)


def goes_on(stopped, patience):
    return not stopped or patience > 3


def test_a_loop_whose_test_is_asked_elsewhere() -> None:
    def f(x):
        stopped = False
        while goes_on(stopped, patience=0):
            x = x + 1
            stopped = stop(x, 3)
        return x.sin()

    assert told(f, 1) == [
        "stopped: False -> body; gt | add gt",
        "stopped: False -> body; gt | add gt",
        "stopped: True -> unknown; gt |",  # what goes_on makes of it is not known
    ]


def test_a_kept_bool_that_may_not_be_looked_at() -> None:
    def f(x, y):
        ok = bool(x)
        if y.value == 1 and ok:
            x = x + 1
        if y.value == 2:
            if ok:
                x = x * 2
        if y.value == 3:
            return x.sin()
        if ok:
            x = x - 1
        return x.mean()

    assert told(f, 1, 0) == ["ok: True -> then; | sub"]
    assert told(f, 1, 1) == ["ok: True -> then; | add", "ok: True -> then; | sub"]
    assert told(f, 1, 2) == ["ok: True -> then; | mul", "ok: True -> then; | sub"]
    assert told(f, 1, 3) == ["ok: True -> unknown; |"]


# ---- what cannot be told ------------------------------------------------------------------------------------------


def test_without_source_the_value_is_still_told() -> None:
    f = define("def f(x):\n    if x > 0:\n        x = x * 2\n    return x\n", "<lost>", remembered=False)
    recorder, out = listen(f, 1)
    (found,) = recorder.decisions(out)
    assert isinstance(found.test, Unlocated)
    assert (found.value, found.branch, found.settled) == (True, "unknown", False)
    assert recorder.named(found.test_ops) == "gt"


def test_values_that_steer_nothing_are_left_out() -> None:
    def f(x):
        return x * x.item()

    assert told(f, 1) == []


def test_an_unknown_value_is_judged_by_what_is_heard() -> None:
    def f(x):
        if x:
            y = x * 2
        else:
            y = x + 1
        return y

    recorder, _ = listen(f, 0)
    (value,) = recorder.asked
    blind = Asked(value.node, value.steering, None, value.code, value.instruction)
    (found,) = branches([blind], recorder.ran, recorder.parents, [1] * len(recorder.parents))
    assert (found.branch, recorder.named(found.branch_ops), found.settled) == ("else", "add", False)


def test_nothing_was_asked() -> None:
    assert branches([], [Ran(0, None, -1)], [()], [1]) == []
