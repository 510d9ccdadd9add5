"""What the page keeps beside a recording, or offers as a file where it may not write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from playwright.sync_api import expect
from torch import nn

import endoscope
from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import look, state_of

BLOCKS = 60
LONGEST = 1600  # letters of an address that a chat accepts


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a_projection_with_a_long_name = nn.Linear(3, 3)
        self.activation = nn.ReLU()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.activation(self.a_projection_with_a_long_name(values))
        return found


@pytest.fixture
def runs_of_many(tmp_path: Path) -> Path:
    """One trial of a network whose open modules fill an address."""
    model = nn.Sequential(*(Block() for _ in range(BLOCKS)))
    with endoscope.Run(tmp_path / "runs", trial="many", when=1, strict=True) as run:
        run.watch(model)
        for _ in range(2):
            model(torch.ones(2, 3)).sum().backward()
    return tmp_path / "runs"


def test_open_modules_that_no_address_can_hold_get_a_short_name(runs_of_many: Path, serve: Serve, visit: Visit) -> None:
    page = visit(look(serve(runs_of_many).address, open="*"))
    closed = page.get_by_role("treeitem", expanded=False)
    expect(closed).to_have_count(0)
    page.get_by_role("treeitem", expanded=True).first.evaluate("item => item.click()")
    settle(page)
    expect(closed).to_have_count(1)
    name = state_of(page)["open"]
    assert re.fullmatch("@[0-9a-f]{12}", name) and len(page.url) < LONGEST
    kept = json.loads((runs_of_many / "many" / f"page-open-{name[1:]}.json").read_text())
    assert sum(len(address) for address in kept) > 1200
    again = visit(page.url)
    expect(again.get_by_role("treeitem", expanded=False)).to_have_count(1)


def test_where_the_recording_cannot_be_written_the_arrangement_is_offered_as_a_file(
    runs_of_many: Path, serve: Serve, visit: Visit, complaints: list[str]
) -> None:
    (runs_of_many / "many" / "page.json").mkdir()  # whoever may write everything cannot write over a folder
    node = f"{BLOCKS - 1}.activation"
    page = visit(look(serve(runs_of_many).address, node=node))
    graph = page.get_by_role("region", name="Dependency graph")
    graph.get_by_role("button", name="arrange").click()
    graph.get_by_role("textbox", name="rename").fill("the last one")
    graph.get_by_role("textbox", name="rename").press("Enter")
    settle(page)
    expect(graph).to_contain_text("this is kept in your browser")
    with page.expect_download() as offered:
        graph.get_by_role("button", name="save as file").click()
    assert offered.value.suggested_filename == "page.json"
    assert json.loads(Path(offered.value.path()).read_text())["renames"] == {node: "the last one"}
    page.reload()
    settle(page)
    graph.get_by_role("button", name="arrange").click()
    expect(graph.get_by_role("textbox", name="rename")).to_have_value("the last one")
    assert all("507" in complaint for complaint in complaints)  # the browser says that the server refused
    complaints.clear()
