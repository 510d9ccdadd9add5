"""Steps that are not like others: several with one number, and some without any tensor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import torch
from playwright.sync_api import Page, Response, expect
from torch import nn

import endoscope
from tests.browser.conftest import Visit, _serve, _stop, settle
from tests.browser.helpers import look, press, press_radio, select_node, selectors, state_of, step_shown, tensor

EXPECTED = [(0, "bare"), (0, "train"), (0, "eval"), (1, "train"), (2, "train"), (2, "eval")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A trial without any tensor, and one whose training and evaluation steps share their numbers."""
    root = tmp_path_factory.mktemp("steps") / "runs"
    with endoscope.Run(root, trial="empty") as run:
        for _ in range(3):
            with run.step() as step:
                step.metric("loss", 1.0)
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with endoscope.Run(root, trial="mixed", when=endoscope.policies.every(1)) as run:
        for number, type_ in EXPECTED:
            with run.step(number, type=type_) as step:
                step.metric("loss", 1.0 / (1 + number))
                if type_ == "bare":
                    continue
                loss = model(torch.randn(4, 3)).square().mean()
                if type_ == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            if type_ == "bare":
                run.watch(model, optimizer)
    served = _serve(root)
    yield served.address
    _stop(served.process)


def shown(page: Page) -> tuple[int, str]:
    """Number and type of the step, as the slider says them."""
    words = selectors(page).get_by_role("slider").get_attribute("aria-valuetext") or ""
    found = re.fullmatch(r"step (\d+) · (\w+)", words)
    assert found is not None and int(found[1]) == step_shown(page), words
    return int(found[1]), found[2]


class Answers:
    """What the server answers from now on."""

    def __init__(self, page: Page) -> None:
        self._heard: list[Response] = []
        page.on("response", lambda answer: self._heard.append(answer))

    def refused(self) -> list[str]:
        """Addresses that it said no to, also in answers to several questions at once."""
        return [answer.url for answer in self._heard if answer.status >= 400 or self._has_refused(answer)]

    def _has_refused(self, answer: Response) -> bool:
        if not answer.url.split("?")[0].endswith(("/together", "/start")):
            return False
        whole = answer.body()
        head = json.loads(whole[4 : 4 + int.from_bytes(whole[:4], "little")])
        return any(part["status"] >= 400 for part in head)


def opened(visit: Visit, address: str) -> tuple[Page, Answers]:
    """A page all of whose requests were heard."""
    page = visit(address)
    page.goto("about:blank")
    answers = Answers(page)
    page.goto(address)
    settle(page)
    return page, answers


def test_keys_pass_all_steps_that_share_a_number(visit: Visit, home: str) -> None:
    page = visit(look(home, trial="mixed"))
    assert shown(page) == (2, "train")  # of the newest number the one with a loss
    press(page, "]")
    passed = [shown(page)]
    for _ in EXPECTED:
        press(page, "[")
        passed.append(shown(page))
    assert passed == [*EXPECTED[::-1], EXPECTED[0]]  # and no further than the end
    passed = [shown(page)]
    for _ in EXPECTED:
        press(page, "]")
        passed.append(shown(page))
    assert passed == [*EXPECTED, EXPECTED[-1]]
    assert "type" not in state_of(page)  # none was chosen: any type is still shown


def test_what_is_shown_is_that_step_and_a_link_leads_there(visit: Visit, home: str) -> None:
    page = visit(look(home, trial="mixed", node="weight", of="update"))
    assert shown(page) == (2, "train")  # an evaluation updates nothing
    page = visit(look(home, trial="mixed"))
    press(page, "]", "[")
    assert shown(page) == (2, "train")
    expect(tensor(page).get_by_role("heading", level=2)).to_be_visible()
    other = visit(page.url)
    assert shown(other) == (2, "train")
    press(other, "]")
    assert shown(other) == (2, "eval")
    other.go_back()
    settle(other)
    assert shown(other) == (2, "train")


def test_keys_for_one_type_stay_with_it_and_do_not_choose_it(visit: Visit, home: str) -> None:
    page = visit(look(home, trial="mixed"))
    passed = []
    for _ in range(4):
        press(page, "{")
        passed.append(shown(page))
    assert passed == [(1, "train"), (0, "train"), (0, "train"), (0, "train")]
    press(page, "]", "}")
    assert shown(page) == (2, "eval") and "type" not in state_of(page)


def test_a_step_without_tensors_says_why_and_asks_for_nothing(visit: Visit, home: str) -> None:
    page, answers = opened(visit, look(home, trial="empty"))
    expect(tensor(page)).to_contain_text("No tensor was recorded in step 2: run.watch(model, optimizer)")
    expect(page.get_by_role("region", name="Dependency graph")).to_contain_text("no tensor of it was recorded")
    press(page, "[", "s", "g", "b")
    expect(tensor(page)).to_contain_text("No tensor was recorded in step 1")
    page.wait_for_timeout(700)  # what is fetched ahead
    assert answers.refused() == []


def test_such_a_step_among_others(visit: Visit, home: str) -> None:
    page, answers = opened(visit, look(home, trial="mixed"))
    while shown(page) != (0, "bare"):
        press(page, "[")
    expect(tensor(page)).to_contain_text("No tensor was recorded in step 0 (bare)")
    expect(page.get_by_role("region", name="Dependency graph")).to_contain_text("Nothing on this step has a value.")
    press(page, "]")
    expect(tensor(page).get_by_role("heading", level=2)).to_be_visible()
    page.wait_for_timeout(700)
    assert answers.refused() == []


def test_the_batch_is_put_together_unit_by_unit_and_heat_is_of_all_elements(page: Page) -> None:
    select_node(page, "cell")
    boxes = page.get_by_role("tree", name="Boxes of the dependency graph").get_by_role("treeitem")
    before = [box.get_attribute("aria-label") for box in boxes.all()]
    press_radio(page, "Over the batch", "std", tensor(page))
    assert [box.get_attribute("aria-label") for box in boxes.all()] == before
    expect(tensor(page)).to_contain_text("std")
