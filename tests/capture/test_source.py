"""The user's line: the nearest frame that is neither torch nor the tracer."""

from __future__ import annotations

import inspect
import sys
from types import FrameType

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import endoscope
from endoscope.capture.data.nodes import NO_POSITION, Position
from endoscope.capture.record.source import INNER_FILES, position_outside, user_position


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def instruction_of(frame: FrameType) -> tuple[object, int]:
    return frame.f_code, frame.f_lasti


def test_torch_and_the_tracer_are_inner_files() -> None:
    assert INNER_FILES[torch.__file__]
    assert INNER_FILES[nn.__file__]
    assert INNER_FILES[inspect.getfile(user_position)]
    assert not INNER_FILES[__file__]
    assert not INNER_FILES["<string>"]


def test_the_raw_position_becomes_file_line_and_function() -> None:
    frame = sys._getframe()
    code, instruction = frame.f_code, frame.f_lasti
    line = Position(code, instruction).line
    assert line is not None
    assert (line.file, line.line, line.function) == (__file__, here() - 3, code.co_qualname)
    assert str(line) == f"{__file__}:{line.line} in {code.co_qualname}"


def test_without_code_there_is_no_line() -> None:
    assert NO_POSITION.line is None


@pytest.mark.parametrize("function", [here, instruction_of, test_torch_and_the_tracer_are_inner_files])
def test_every_instruction_has_the_line_that_python_gives_it(function: object) -> None:
    code = function.__code__  # type: ignore[attr-defined]
    for instruction, position in zip(range(0, len(code.co_code), 2), code.co_positions(), strict=True):
        line = Position(code, instruction).line
        assert line is not None
        if position[0] is not None:
            assert line.line == position[0]


def test_this_very_frame_is_found() -> None:
    assert position_outside(sys._getframe()).code is sys._getframe().f_code
    code, _ = (lambda: user_position())()
    assert code is not None and code.co_filename == __file__


def test_each_operation_knows_its_line_also_through_torch() -> None:
    def target(x: Tensor) -> Tensor:
        y = x * 2  # first
        y = F.softmax(y, -1)  # second
        return nn.Sequential(nn.ReLU(), nn.Tanh())(y)  # third

    first = target.__code__.co_firstlineno + 1
    trace = endoscope.trace(target, torch.rand(3))
    lines = [(op.type, op.source.line) for op in trace.ops if op.source]
    assert lines == [("mul", first), ("softmax", first + 1), ("relu", first + 2), ("tanh", first + 2)]


def test_one_expression_on_several_lines() -> None:
    def target(x: Tensor) -> Tensor:
        return (
            x.exp()
            + x.sin()
        )  # fmt: skip

    first = target.__code__.co_firstlineno
    trace = endoscope.trace(target, torch.rand(3))
    lines = {op.type: op.source.line - first for op in trace.ops if op.source}
    assert lines["exp"] == 2
    assert lines["sin"] == 3
