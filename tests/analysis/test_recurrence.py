"""Which operations are passes of one layer, and which layers form loops.

`UPDATE_GOLDEN=1 pytest tests/analysis/test_recurrence.py` writes the texts anew; read what changed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import endoscope
from endoscope.analysis.recurrence import Recurrence, find_recurrence
from tests.analysis.recurrence_cases import CASES, Block, Lstm
from tests.analysis.recurrence_programs import Program
from tests.analysis.recurrence_text import found_in, modules_text, recurrence_text

GOLDEN = Path(__file__).parents[1] / "golden" / "recurrence"


def check(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_golden_text(name: str) -> None:
    torch.manual_seed(0)
    model, x = CASES[name]()
    check(name, recurrence_text(endoscope.trace(model, x)))


def test_golden_texts_are_all_used() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {*CASES, "generate"}


@pytest.mark.parametrize("name", ["bert", "gpt2", "resnet", "vit", "roberta", "llama", "convnext", "clip"])
def test_published_models_without_recurrence(name: str) -> None:
    pytest.importorskip("transformers", minversion="5.0")
    from tests.zoo.architectures import ARCHITECTURES

    model, inputs = ARCHITECTURES[name].build()
    _, recurrence, names = found_in(endoscope.trace(model, inputs, save="none"))
    assert set(names.passes) == {1}
    assert recurrence.loops == () and recurrence.reused == frozenset()


@pytest.mark.parametrize(("name", "passes"), [("albert", 2), ("mamba", 12), ("nystromformer", 6)])
def test_published_models_with_recurrence(name: str, passes: int) -> None:
    pytest.importorskip("transformers", minversion="5.0")
    from tests.zoo.architectures import ARCHITECTURES

    model, inputs = ARCHITECTURES[name].build()
    _, recurrence, names = found_in(endoscope.trace(model, inputs, save="none"))
    assert max(names.passes) == passes
    assert {loop.passes for loop in recurrence.loops} == {passes}
    assert recurrence.reused == frozenset()


def test_generate() -> None:
    transformers = pytest.importorskip("transformers", minversion="5.0")
    sizes = {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 50}
    tokens = {"bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **tokens)).eval()
    arguments = {"inputs": torch.randint(1, 50, (1, 4)), "max_new_tokens": 5, "do_sample": False}
    check("generate", modules_text(endoscope.trace(model.generate, arguments)))


# ---- what hangs together with the rest of a trace ------------------------------------------------------------


def test_a_model_that_is_called_again_and_again() -> None:
    model = torch.nn.Linear(5, 5)
    with endoscope.tracing(model) as trace:
        x = torch.rand(2, 5)
        for _ in range(3):
            x = model(x).relu()
    _, recurrence, names = found_in(trace)
    assert names.passes[names.label.index("linear_1_1")] == 3
    assert [loop.passes for loop in recurrence.loops] == [3]


def test_a_model_that_is_called_on_other_inputs_is_only_used_again() -> None:
    model = torch.nn.Linear(5, 5)
    with endoscope.tracing(model) as trace:
        for _ in range(3):
            model(torch.rand(2, 5)).relu()
    _, recurrence, names = found_in(trace)
    assert max(names.passes) == 3
    assert recurrence.loops == () and len(recurrence.reused) >= 1


@pytest.mark.parametrize("save", ["all", "none"])
def test_what_is_saved_does_not_matter(save: str) -> None:
    _, recurrence, _ = found_in(endoscope.trace(Lstm(), torch.rand(1, 4, 4), save=save))
    _, expected, _ = found_in(endoscope.trace(Lstm(), torch.rand(1, 4, 4)))
    assert recurrence.keys == expected.keys
    assert recurrence.loops == expected.loops


def test_weights_of_functional_code_are_parameters() -> None:
    weights = [torch.rand(5, 5, requires_grad=True) for _ in range(3)]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.relu(x @ weight)
        return x

    _, recurrence, _ = found_in(endoscope.trace(forward, torch.rand(5, 5)))
    assert set(recurrence.keys) == {None}


def test_buffers_tell_blocks_apart_that_are_not_called_as_modules() -> None:
    class Codebook(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.code: torch.Tensor
            self.register_buffer("code", torch.rand(5, 5))

        def encode(self, x: torch.Tensor) -> torch.Tensor:
            return (x @ self.code).relu()

    class Quantizer(torch.nn.Module):
        def __init__(self, books: list[Codebook]) -> None:
            super().__init__()
            self.books = torch.nn.ModuleList(books)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for book in self.books:
                x = book.encode(x)
            return x

    same = Codebook()
    _, three, _ = found_in(endoscope.trace(Quantizer([Codebook(), Codebook(), Codebook()]), torch.rand(5, 5)))
    _, one, _ = found_in(endoscope.trace(Quantizer([same, same, same]), torch.rand(5, 5)))
    assert set(three.keys) == {None}
    assert [loop.passes for loop in one.loops] == [3]


def test_a_loop_over_one_block_and_over_three() -> None:
    block = Block()
    for blocks, passes in (([block] * 3, 3), ([Block(), Block(), Block()], 1)):
        _, _, names = found_in(endoscope.trace(torch.nn.Sequential(*blocks), torch.rand(5)))
        assert max(names.passes) == passes


# ---- made-up runs --------------------------------------------------------------------------------------------


def passes(recurrence: Recurrence) -> list[int]:
    return [recurrence.keys.count(key) if key is not None else 1 for key in recurrence.keys]


def test_nothing() -> None:
    recurrence = find_recurrence(Program().facts())
    assert (recurrence.keys, recurrence.loops, recurrence.reused) == ([None], (), frozenset())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("xyzxyz", [2] * 6),
        ("xyzaxyz", [1] * 7),
        ("xyzaxyzbxyz", [1] * 11),
        ("xyzxyzx", [3, 2, 2, 3, 2, 2, 3]),
        ("xyzxyzaxyz", [2] * 6 + [1] * 4),
        ("xxx", [3, 3, 3]),
        ("xyxyzzz", [2, 2, 2, 2, 3, 3, 3]),
    ],
)
def test_back_to_back(text: str, expected: list[int]) -> None:
    program = Program()
    for statement in text:
        program.do(statement)
    assert passes(find_recurrence(program.facts()))[1:] == expected


def test_a_loop_whose_passes_are_independent_is_none() -> None:
    program = Program()
    for _ in range(4):
        program.do("x", reads=[program.input])
        program.do("y")
    assert set(find_recurrence(program.facts()).keys) == {None}


def test_a_parameter_between_repeats_keeps_them_apart() -> None:
    program = Program()
    for n in range(3):
        program.do("x")
        program.do("linear", parameters=[f"weight {n}"])
        program.do("y")
    assert set(find_recurrence(program.facts()).keys) == {None}


def test_modules_keep_statements_apart() -> None:
    program = Program()
    for n in range(3):
        program.do("x", modules=(f"h.{n}", "shared"))
    assert set(find_recurrence(program.facts()).keys) == {None}


def test_another_function_on_the_same_parameter_is_another_layer() -> None:
    program = Program()
    program.do("embedding", parameters=["weight"])
    program.do("linear", parameters=["weight"])
    assert set(find_recurrence(program.facts()).keys) == {None}


def test_a_long_run_takes_little_time() -> None:
    """Bounds that leave room for a busy machine; `benchmarks/recurrence.py` measures."""
    word, longer = "a", "ab"
    while len(longer) < 20_000:
        word, longer = longer, longer + word
    builds: dict[str, Callable[[int], str]] = {
        "same": lambda n: "a",
        "loop": lambda n: "abcde"[n % 5],
        "word": lambda n: longer[n],
        "line by line": lambda n: str(n),
    }
    for name, statement in builds.items():
        program = Program()
        for n in range(20_000):
            program.do(statement(n))
        facts = program.facts()
        started = time.process_time()
        assert find_recurrence(facts).loops is not None
        assert time.process_time() - started < 2.0, name
