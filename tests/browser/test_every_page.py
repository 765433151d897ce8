"""What holds for each page, at each width, in both schemes: nothing sticks out or complains, and all has a name."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.article_data import COPY, DONE, FIRST
from tests.browser.conftest import LAPTOP, OpenPage

PAGES = {
    "overview": "/",
    "settings": "/settings",
    "feeds": "/feeds",
    "feed-that-fails": "/feeds/1001",
    "feed-that-waits": "/feeds/1002",
    "hosts": "/hosts",
    "host": "/hosts/slow.example",
    "articles": "/articles",
    "articles-dead": "/articles?tab=dead",
    "articles-ledger": "/articles?tab=ledger&feed=1",
    "article": f"/articles/{FIRST}",
    "article-copy": f"/articles/{COPY}",
    "article-done": f"/articles/{DONE}",
    "dead-letters": "/dead-letters?letter=" + "0" * 32,
    "consumers": "/consumers",
    "missing": "/no-such-page",
}
"""By the name of its screenshots. A page's owner adds it here."""

PHONE, ZOOMED, WIDE = 360, LAPTOP // 2, 1920
"""A page at 200 % has half as many pixels of its own."""

SCREENSHOTS = Path(__file__).parents[2] / ".feedmill" / "test" / "screenshots"

JUDGED = {f"{PHONE}-light", f"{LAPTOP}-dark"}
"""Looks that axe judges and that are kept as pictures, which takes a second each."""

SERIOUS = {"serious", "critical"}


def looks(page: Page) -> Iterator[str]:
    for scheme, width in product(("light", "dark"), (PHONE, ZOOMED, LAPTOP, WIDE)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.set_viewport_size({"width": width, "height": 800})
        yield f"{width}-{scheme}"


def find_overflow(page: Page) -> list[str]:
    found: list[str] = page.evaluate(
        """() => {
            const room = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= room) return [];
            return [...document.querySelectorAll("body *")]
                .filter((each) => each.getBoundingClientRect().right > room + 1)
                .map((each) => each.outerHTML.slice(0, 120));
        }"""
    )
    return found


def find_violations(page: Page) -> list[str]:
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{rule['id']}: {rule['help']}: {node['html'][:150]}"
        for rule in found
        if rule["impact"] in SERIOUS
        for node in rule["nodes"]
    ]


def check(page: Page, name: str) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for look in looks(page):
        assert find_overflow(page) == [], look
        if look in JUDGED:
            page.screenshot(path=SCREENSHOTS / f"{name}-{look}.png", full_page=True)
            assert find_violations(page) == [], look


def walk(page: Page) -> None:
    """Go through the page by keyboard alone, and leave it as it was."""
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = page.evaluate("document.querySelectorAll('main a, main button, main input, main select, summary').length")
    for _ in range(min(reached, 40)):
        page.keyboard.press("Tab")
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.evaluate("document.activeElement.blur()")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_and_can_be_read_and_walked_by_everybody(
    name: str, open_page: OpenPage, complaints: list[str]
) -> None:
    page = open_page(PAGES[name])
    assert page.locator("h1").count() == 1
    walk(page)
    check(page, name)
    if name == "missing":
        assert [said for said in complaints if "404" not in said] == []
        complaints.clear()


def test_the_login_fits_and_can_be_read_by_everybody(open_page: OpenPage) -> None:
    check(open_page("/login", scopes=()), "login")
