"""What a person reads on the pages of hosts, and that strangers' names are only text."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from services.admin.actor import Scope
from tests.browser.conftest import OpenPage
from tests.browser.feed_data import HOSTILE


@pytest.mark.parametrize("path", ["/feeds?q=evil", "/feeds/1005", "/hosts/evil.example"])
def test_a_strangers_name_is_only_text(path: str, open_page: OpenPage) -> None:
    page = open_page(path)
    expect(page.get_by_role("main")).to_contain_text(HOSTILE)
    assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0


def test_a_host_says_until_when_it_is_left_alone(open_page: OpenPage) -> None:
    page = open_page("/hosts", scopes=(Scope.READ,))
    expect(page.locator("#left-alone")).to_contain_text("slow.example is throttled until")
    expect(page.locator("#left-alone")).to_contain_text("down.example is down until")
    page.locator("#left-alone").get_by_role("link", name="slow.example").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("It is throttled until")
    page.get_by_role("link", name="Slow Weekly").first.click()
    expect(page.locator("#timing")).to_contain_text("It waits for its host until")
