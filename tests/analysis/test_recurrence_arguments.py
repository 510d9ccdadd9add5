"""Plain arguments of calls, and statements of the source."""

from __future__ import annotations

import torch

from endoscope.analysis.recurrence.arguments import differing, signature
from endoscope.analysis.recurrence.statements import number_statements

X = torch.rand(2)


def test_tensors_do_not_count() -> None:
    assert signature((X, 1), {"dim": 0}) == signature((X + 1, 1), {"dim": 0})
    assert signature((X, [X, X]), None) == signature((X, [X, X]), {})


def test_values_and_their_types_count() -> None:
    told = [signature((X, value), None) for value in (1, 1.0, True, "1", None, [1], slice(1), ..., float("nan"))]
    assert len(set(told)) == len(told)
    assert signature((float("nan"),), None) == signature((float("nan"),), None)
    assert signature((X,), {"dim": 1}) != signature((X,), {"dim": 2})
    assert signature((torch.float32,), None) != signature((torch.float64,), None)


def test_differing_arguments_are_named() -> None:
    calls = [((X, (slice(None), t), 3), {"alpha": t // 2, "beta": 1}) for t in range(3)]
    assert differing(calls) == {"args[1][1]": (0, 1, 2), "alpha": (0, 0, 1)}


def test_parts_of_slices_and_missing_arguments() -> None:
    assert differing([((X, slice(1, 2)), None), ((X, slice(1, 3)), {"dim": 0})]) == {
        "args[1].stop": (2, 3),
        "dim": ("absent", 0),
    }


def test_what_is_no_plain_value_is_shown_without_quotes() -> None:
    class Shy:
        def __repr__(self) -> str:
            raise ValueError("nothing to see")

    assert repr(differing([((X, "a"), {}), ((X, X), {"device": torch.device("cpu")}), ((X, Shy()), {})])) == (
        "{'args[1]': ('a', tensor, <Shy>), 'device': (absent, device(type='cpu'), absent)}"
    )
    assert signature((Shy(),), None) == signature((Shy(),), None)


def test_nothing_differs() -> None:
    assert differing([((X, 1), None), ((X + 1, 1), {})]) == {}
    assert differing([]) == {}


def test_the_test_of_a_while_is_one_statement() -> None:
    code = compile("while f(x):\n    x = g(x)\n", "example", "exec")
    calls = [i.offset for i in __import__("dis").get_instructions(code) if i.opname == "CALL"]
    lines = [list(code.co_positions())[offset // 2][0] for offset in calls]
    places = [("f" if line == 1 else "g", id(code), offset, 0) for line, offset in zip(lines, calls, strict=True)]
    again = [*places, *places]
    numbers = number_statements(again, lambda n: code)
    assert [numbers[n] for n, line in enumerate(2 * lines) if line == 1] == [numbers[0]] * (2 * lines.count(1))
    assert len(set(numbers)) == 2


def test_statements_without_a_place_and_without_a_code_object() -> None:
    places = [None, ("f", 0, -1, 0), ("f", 0, -1, 0), ("g", 0, -1, 0), None]
    assert number_statements(places, lambda n: None) == [-1, 0, 0, 1, -1]
    assert number_statements([], lambda n: None) == []
