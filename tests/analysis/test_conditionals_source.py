"""Where the source of a test is looked for, in which kinds of code, and what is said when it is not found."""

from __future__ import annotations

import functools
import importlib.util
import linecache
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from endoscope.analysis.branching.conditionals import Test, Unlocated, locate
from tests.analysis.small_recorder import all_tests_of, define, first_test_of, listen, written


def unlocated(function: Any, *values: Any) -> Unlocated:
    (found,) = listen(function, *values)[0].located()
    assert isinstance(found, Unlocated), found
    return found


# ---- kinds of functions -------------------------------------------------------------------------------------------


def test_lambdas() -> None:
    f, g = (lambda x: x * 2 if x > 0 else x), (lambda x: x * 3 if x > 1 else x)
    assert [first_test_of(h, 1).text for h in (f, g)] == ["x > 0", "x > 1"]


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(x: Any) -> Any:
        return function(x) if x > 0 else x

    return wrapper


@decorated
@decorated
def with_decorators(x):
    return x * 2 if x > 1 else x


def test_decorators() -> None:
    tests = all_tests_of(with_decorators, 2)
    assert [t.text for t in tests] == ["x > 0", "x > 0", "x > 1"]
    assert [t.function for t in tests] == ["decorated.<locals>.wrapper"] * 2 + ["with_decorators"]


def test_methods_generators_and_closures() -> None:
    class Model:
        __secret = 0

        def forward(self, x: Any) -> Any:
            def inner() -> Any:
                return x * 2 if x > self.__secret else x

            return inner()

        def steps(self, x: Any) -> Any:
            while x < 3:
                x = x + 1
                yield x

    assert first_test_of(Model().forward, 2).text == "x > self.__secret"
    assert all_tests_of(lambda x: list(Model().steps(x)), 1)[0].kind == "while"


def test_module_level_code() -> None:
    text = "if x > 0:\n    y = x * 2\n"
    linecache.cache["<cell>"] = (len(text), None, text.splitlines(keepends=True), "<cell>")
    test = first_test_of(lambda x: exec(compile(text, "<cell>", "exec"), {"x": x}), 1)
    assert (test.kind, test.function, test.line) == ("if", "<module>", 1)


def test_an_evaluated_expression() -> None:
    text = "x * 2 if x > 0 else x"
    linecache.cache["<expression>"] = (len(text), None, [text], "<expression>")
    test = first_test_of(lambda x: eval(compile(text, "<expression>", "eval"), {"x": x}), 1)
    assert (test.kind, written(test, "then")) == ("ternary", "x * 2")


def test_async_functions_and_class_bodies() -> None:
    def f(x):
        async def steps():
            if x > 1:
                return x * 2

        class Made:
            value = x * 3 if x > 2 else x

        with pytest.raises(StopIteration):
            steps().send(None)
        return Made.value

    first, second = all_tests_of(f, 1)
    assert {first.text: first.kind, second.text: second.kind} == {"x > 1": "if", "x > 2": "ternary"}


@pytest.mark.parametrize("instruction", [-1, -2, 3, 10**6])
def test_an_instruction_that_does_not_exist(instruction: int) -> None:
    assert isinstance(locate(with_decorators.__code__, instruction), Unlocated)


# ---- where is the source? -----------------------------------------------------------------------------------------

CELL = "def f(x):\n    if x > 0:\n        x = x * 2\n    return x\n"


def test_cells_of_a_notebook() -> None:
    test = first_test_of(define(CELL, "<ipython-input-3-c0ffee>"), 1)
    assert (test.kind, test.file, test.line) == ("if", "<ipython-input-3-c0ffee>", 2)
    # Two cells with the same text have equal code objects; each is found in its own cell.
    assert first_test_of(define(CELL, "<ipython-input-4-c0ffee>"), 1).file == "<ipython-input-4-c0ffee>"


def test_text_without_entry_in_linecache() -> None:
    found = unlocated(define(CELL, "<nobody knows>", remembered=False), 1)
    assert found.reason == "source not available: nothing is known of the text of <nobody knows>"
    assert (found.file, found.line, found.function) == ("<nobody knows>", 2, "f")
    assert str(found).endswith("(<nobody knows>:2 in f)")


def test_no_python_code_at_all() -> None:
    found = locate(None, -1)
    assert isinstance(found, Unlocated)
    assert str(found) == "source not available: no Python code of yours was running"


def test_text_that_is_not_python() -> None:
    f = define(CELL, "<broken>")
    linecache.cache["<broken>"] = (3, None, ["if (\n"], "<broken>")
    assert unlocated(f, 1).reason.startswith("source not available: the text of <broken> is not Python")


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "changed",
    [
        "# a new first line\n" + CELL,
        CELL.replace("def f", "def g"),
        CELL.replace("x > 0", "xx > 0"),
        CELL.replace("x > 0", "u > 0"),
        "\n",
    ],
)
def test_source_changed_on_disk(tmp_path: Path, changed: str) -> None:
    path = tmp_path / "model.py"
    path.write_text(CELL)
    f = load(path).f
    path.write_text(changed)
    assert unlocated(f, 1).reason.startswith("source changed: the file ")


def test_source_removed_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(CELL)
    f = load(path).f
    path.unlink()
    assert unlocated(f, 1).reason.startswith("source not available: ")


def test_source_changed_and_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(CELL)
    assert first_test_of(load(path).f, 1).text == "x > 0"
    path.write_text("# new\n\n" + CELL.replace("x > 0", "x.mean() > 0"))
    assert first_test_of(load(path).f, 1).text == "x.mean() > 0"


def test_text_that_was_read_before_the_change_still_serves(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(CELL)
    f = load(path).f
    assert first_test_of(f, 1).text == "x > 0"
    path.write_text("# new\n" + CELL)
    assert first_test_of(f, 1).text == "x > 0"


def test_without_columns(tmp_path: Path) -> None:
    script = """
        import sys
        from endoscope.analysis.branching.conditionals import locate
        class T:
            def __bool__(self):
                frame = sys._getframe(1)
                found = locate(frame.f_code, frame.f_lasti)
                print(getattr(found, "text", None) or found.reason.partition(":")[0], getattr(found, "kind", ""))
                return True
        t = T()
        if t: pass
        x = 1 if t else 2
        y = 1 if t else 2 if t else 3
    """
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(script))
    source = str(Path(sys.modules["endoscope"].__file__ or "").parents[1])
    done = subprocess.run(
        [sys.executable, "-X", "no_debug_ranges", str(path)],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": source},
    )  # fmt: skip
    assert done.stdout.splitlines() == ["t if", "t ternary", "source position not known "]


# ---- speed --------------------------------------------------------------------------------------------------------


def test_thousands_of_places_in_one_file() -> None:
    lines = [f"    if x > {n}: x = x + 1" for n in range(2000)]
    f = define("\n".join(["def f(x):", *lines, "    return x\n"]), "<long>")
    recorder, _ = listen(f, 0)
    started = time.process_time()
    found = recorder.decisions(None)
    taken = time.process_time() - started
    assert len(found) == 2000
    assert isinstance(found[-1].test, Test) and found[-1].test.text == "x > 1999"
    assert taken < 3  # about 0.5 s where nothing else runs
