"""Raw values as numbers: exactly those that were recorded, drawn where they are in view, copied with all digits."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

import endoscope
from endoscope.query.recording import Recording
from tests.browser.conftest import Visit, _serve, _stop, settle
from tests.browser.helpers import look, press, step_shown, tensor

ROWS, COLUMNS = 300, 120
CELL_WIDTH, CELL_HEIGHT = 74, 21  # as in frontend/src/draw/grid_cells.ts

#: From now on every text that is drawn on a canvas is kept.
LISTEN = """() => {
  const prototype = CanvasRenderingContext2D.prototype;
  const draw = prototype.fillText;
  window.__drawn = [];
  prototype.fillText = function (text, ...rest) {
    if (this.canvas.closest(".number-grid")) window.__drawn.push(text);
    return draw.call(this, text, ...rest);
  };
}"""


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One step, with a tensor that no screen has room for."""
    root = tmp_path_factory.mktemp("grid") / "runs"
    torch.manual_seed(0)
    run = endoscope.Run(root, trial="large", when=endoscope.policies.every(1), keep=2)
    with run.step() as step:
        values = torch.randn(4, ROWS, COLUMNS)
        values[:, 0, 0] = float("nan")
        values[:, 0, 1] = float("inf")
        values[:, 1, 0] = 1e-30
        step.tag("large", values, kind="input")
    run.close()
    return root / "large"


@pytest.fixture(scope="module")
def home(trial: Path) -> Iterator[str]:
    served = _serve(trial)
    yield served.address
    _stop(served.process)


@pytest.fixture
def recorded(trial: Path) -> np.ndarray:
    found = endoscope.open(trial)
    assert isinstance(found, Recording)
    return found.tensor("large", 0)


def shown(visit: Visit, home: str) -> tuple[Page, Locator]:
    """The first kept sample, rows and columns as they are recorded."""
    page = visit(look(home, node="large", values_show="numbers", values_axes="1,2"), permissions=["clipboard-read"])
    grid = tensor(page).get_by_label(re.compile("^Raw values as numbers"))
    expect(grid).to_be_visible()
    return page, grid


def readout(page: Page) -> tuple[list[int], float]:
    """The place and the value of the selected cell, as they stand below the grid."""
    text = tensor(page).get_by_role("status").filter(has_text="[").inner_text()
    found = re.fullmatch(r"\[(.+)\] (.+)", text)
    assert found is not None, text
    value = found[2].replace("−", "-").replace("∞", "inf").replace("\u202f", "")
    return [int(place) for place in found[1].split(", ")], float(value)


def test_every_digit_is_the_recorded_one(visit: Visit, home: str, recorded: np.ndarray) -> None:
    page, grid = shown(visit, home)
    assert step_shown(page) == 0 and recorded.shape == (2, ROWS, COLUMNS)
    grid.focus()
    press(page, "ArrowRight")
    for keys in ([], ["ArrowRight"], ["ArrowDown"], ["ArrowLeft"], ["End"], ["PageDown", "PageDown"], ["Home"]):
        press(page, *keys)
        (sample, row, column), value = readout(page)
        assert sample == 0
        expected = recorded[0, row, column]
        assert np.float32(value) == expected or (np.isnan(value) and np.isnan(expected)), (row, column)
    assert row > 10 and column == 0  # it has really gone somewhere


def test_only_what_is_in_view_is_drawn(visit: Visit, home: str, recorded: np.ndarray) -> None:
    page, grid = shown(visit, home)
    page.evaluate(LISTEN)
    top, left = 200, 70
    grid.evaluate("(grid, at) => grid.scrollTo(at[0], at[1])", [left * CELL_WIDTH, top * CELL_HEIGHT])
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert grid.locator("*").count() == 2  # a canvas, and what scrolls below it
    box = grid.bounding_box()
    assert box is not None
    rows, columns = int(box["height"] / CELL_HEIGHT) + 2, int(box["width"] / CELL_WIDTH) + 2
    drawn = page.evaluate("() => window.__drawn")
    assert 0 < len(drawn) <= 2 * (rows * columns + rows + columns)
    assert {str(top + 1), str(left + 1)} <= set(drawn)  # names of rows and columns
    near = [float(text.replace("−", "-").replace("\u202f", "")) for text in drawn]
    for expected in recorded[0, top + 1, left : left + 2]:
        assert any(value == pytest.approx(expected, rel=5e-3) for value in near)


def test_copied_numbers_are_separated_by_tabs_and_exact(visit: Visit, home: str, recorded: np.ndarray) -> None:
    page, grid = shown(visit, home)
    grid.focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Control+c")
    settle(page)
    text = page.evaluate("() => navigator.clipboard.readText()")
    lines = text.splitlines()
    assert len(lines) == ROWS and {line.count("\t") for line in lines} == {COLUMNS - 1}
    found = np.loadtxt(io.StringIO(text), delimiter="\t", dtype=np.float64).astype(np.float32)
    np.testing.assert_array_equal(found, recorded[0])


def test_a_part_is_copied_alone(visit: Visit, home: str, recorded: np.ndarray) -> None:
    page, grid = shown(visit, home)
    grid.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "Shift+ArrowDown", "Shift+ArrowRight"):
        page.keyboard.press(key)
    page.keyboard.press("Control+c")
    text = page.evaluate("() => navigator.clipboard.readText()")
    found = np.array([[np.float32(number) for number in line.split("\t")] for line in text.splitlines()])
    np.testing.assert_array_equal(found, recorded[0, 2:4, 0:2])
