"""Who may look: the printed address carries the token once, the tab keeps it, links that are copied carry none."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Page, Request, expect

from tests.browser.conftest import Serve, Visit, settle
from tests.browser.helpers import look, state_of, step_shown


def test_the_address_carries_the_token_once(visit: Visit, address: str) -> None:
    assert "?token=" in address
    token = address.partition("?token=")[2]
    asked: list[Request] = []
    page = visit(look(address, step=10))
    page.on("request", lambda request: asked.append(request))
    assert "token" not in page.url and state_of(page)["step"] == "10"
    page.reload()
    settle(page)
    data = [request for request in asked if "/api/" in request.url]
    assert data and all(request.headers["authorization"] == f"Bearer {token}" for request in data)
    assert not any(token in request.url for request in asked)
    assert page.evaluate("Object.values(localStorage).join()").find(token) < 0


def test_a_copied_link_says_what_is_missing_and_takes_the_printed_address(browser: Browser, address: str) -> None:
    window = browser.new_context()
    page: Page = window.new_page()
    page.goto(address.partition("?")[0] + "#v=1&tab=graph")
    field = page.get_by_role("textbox", name="printed address")
    expect(field).to_be_visible()
    expect(page.get_by_text("This tab has no token")).to_be_visible()
    field.fill(address)
    field.press("Enter")
    expect(page.get_by_role("region", name="Dependency graph")).to_be_visible()
    window.close()


def test_show_opens_a_step(runs: Path, serve: Serve, visit: Visit) -> None:
    served = serve(runs, "--step", "31")
    assert served.address.endswith("#v=1&tab=graph&step=31")
    page = visit(served.address)
    assert page.get_by_role("region", name="Dependency graph").is_visible()
    assert abs(step_shown(page) - 31) <= 5
