"""What a person does on the page, in the words of the tests. Everything is found by its role and its name."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import settle


def look(address: str, **state: object) -> str:
    """An address that opens on a certain view, the graph if none is named; `b_step=0` stands for `b.step=0`."""
    state = {"tab": "graph", **state}
    words = "&".join(f"{name.replace('_', '.')}={str(value).replace(' ', '+')}" for name, value in state.items())
    return f"{address}#v=1&{words}"


def state_of(page: Page) -> dict[str, str]:
    """What the address says is on screen."""
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).fragment).items()}


def tensor(page: Page) -> Locator:
    """The side that shows the selected tensor."""
    return page.get_by_role("region", name="Selected tensor")


def statistic(side: Locator, name: str) -> str:
    """The number that stands below a name among the statistics."""
    tiles = side.get_by_role("region", name=re.compile("^statistics"))
    return tiles.locator("dt", has_text=re.compile(f"^{name}$")).locator("xpath=following-sibling::dd").inner_text()


def selectors(page: Page) -> Locator:
    return page.get_by_role("region", name="Selectors")


def choose(page: Page, label: str, option: str, inside: Locator | None = None) -> None:
    """Pick from a list by the word that it shows."""
    (inside or selectors(page)).get_by_role("combobox", name=label, exact=True).select_option(label=option)
    settle(page)


def press_radio(page: Page, group: str, option: str, inside: Locator | None = None) -> None:
    (inside or page).get_by_role("radiogroup", name=group, exact=True).get_by_text(option, exact=True).click()
    settle(page)


def select_node(page: Page, name: str) -> None:
    """By searching, as one does in a graph that is large."""
    search = page.get_by_role("combobox", name="Search nodes and modules")
    search.fill(name)
    page.get_by_role("listbox").get_by_role("option").first.wait_for()
    search.press("Enter")
    settle(page)
    expect(tensor(page).get_by_role("heading", level=2)).to_have_text(name)


def go_to_step(page: Page, number: int) -> None:
    field = selectors(page).get_by_role("textbox", name="step")
    field.fill(str(number))
    field.press("Enter")
    settle(page)


def step_shown(page: Page) -> int:
    return int(selectors(page).get_by_role("textbox", name="step").input_value().replace("\u202f", ""))


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        settle(page)


def go_to_tab(page: Page, name: str) -> Locator:
    tabs = page.get_by_role("navigation", name="Tabs")
    if not tabs.get_by_role("button", name=re.compile(f"^{name}")).is_visible():
        tabs.locator("button[aria-haspopup]").click()
    tabs.get_by_role("button", name=re.compile(f"^{name}")).last.click()
    settle(page)
    return page.get_by_role("region", name=name if name != "Graph" else "Dependency graph")


def selected_in_graph(page: Page) -> str:
    """The name of the node that the graph says is selected."""
    sentence = page.get_by_role("region", name="Dependency graph").get_by_role("status").inner_text()
    return sentence.split(",")[0]


def number(text: str) -> float:
    """A number as the page writes it."""
    found = re.search(r"[−-]?[\d.]+(?:e[−-]?\d+)?", text.replace("\u202f", ""))
    assert found is not None, text
    return float(found[0].replace("−", "-"))
