"""What a person does with articles, dead letters and consumers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from services.admin.actor import Scope
from services.admin.registry import connect
from tests.browser.article_data import COPY, DEAD, FIRST
from tests.browser.conftest import PATIENCE_MS, OpenPage, Site

FIND = "SELECT md5 FROM pending_articles WHERE claimed_until IS NULL AND duplicate_of IS NULL ORDER BY md5 LIMIT 1"


@pytest.fixture
def new_article(site: Site) -> str:
    """The key of an article that nobody holds."""
    with connect(site.database_url) as connection:
        row = connection.execute(FIND).fetchone()
    assert row is not None
    return str(row["md5"])


def test_a_person_finds_an_article_and_its_story(open_page: OpenPage) -> None:
    page = open_page("/articles", scopes=(Scope.READ,))
    page.get_by_label("Duplicates").select_option("any")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**duplicates=any**")
    page.get_by_role("link", name=re.compile("<script>")).click()
    page.wait_for_url(f"**/articles/{COPY}")
    expect(page.get_by_role("heading", level=1)).to_contain_text("<script>document.title = 'pwned'</script>")
    assert "pwned" not in page.title().replace("document.title = 'pwned'", "")
    expect(page.get_by_label("Text of the first").locator("mark.differs")).to_have_text("Monday ")
    expect(page.get_by_label("Text of the duplicate").locator("mark.differs")).to_have_text("Tuesday ")
    expect(page.locator("mark.person").first).to_have_attribute("title", "person: Angela Merkel")
    assert page.get_by_role("button", name="Bury").count() == 0
    page.get_by_role("link", name="The railway opens, part 1", exact=True).first.click()
    page.wait_for_url(f"**/articles/{FIRST}")


def test_lists_go_on_and_back(open_page: OpenPage) -> None:
    page = open_page("/articles?tab=claimable", scopes=(Scope.READ,))
    first = page.locator("tbody th a").first.inner_text()
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**cursor=**")
    assert page.locator("tbody th a").first.inner_text() != first
    page.get_by_role("link", name="First page").click()
    expect(page.locator("tbody th a").first).to_have_text(first)


def test_an_article_is_buried_and_revived(open_page: OpenPage, new_article: str) -> None:
    page = open_page(f"/articles/{new_article}")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Bury").click()
    expect(page.locator("#way .state")).to_have_text("new")
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Bury").click()
    expect(page.locator("#answer")).to_have_text("It is dead.")
    expect(page.locator("#way .state")).to_have_text("dead")
    expect(page.get_by_text("by hand, on its page")).to_be_visible()
    page.get_by_role("button", name="Revive").click()
    expect(page.locator("#way .state")).to_have_text("new")


def test_a_lease_is_ended_by_hand(site: Site, open_page: OpenPage, new_article: str) -> None:
    with connect(site.database_url) as connection:
        connection.execute(
            "UPDATE pending_articles SET lease_id = gen_random_uuid(), claimed_until = now() + interval '1 hour'"
            " WHERE md5 = %s",
            [new_article],
        )
    page = open_page(f"/articles/{new_article}", scopes=(Scope.READ, Scope.CONSUME))
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Release").click()
    expect(page.locator("#way .state")).to_have_text("back")


def rows(page: Page) -> int:
    return page.locator("#letters tbody tr").count()


def test_letters_are_read_requeued_and_purged(open_page: OpenPage) -> None:
    page = open_page("/dead-letters")
    before = rows(page)
    page.get_by_role("link", name="exhausted").first.click()
    page.wait_for_url("**letter=**")
    body = page.get_by_label("Body of the letter")
    expect(body).to_contain_text('"feed_id"')
    assert "hunter2" not in page.content()
    page.get_by_role("button", name="Purge the chosen").click()
    expect(page.locator("#answer")).to_have_text("Choose letters first.")
    asked: list[str] = []

    def accept(dialog: object) -> None:
        asked.append(dialog.message)  # type: ignore[attr-defined]
        dialog.accept()  # type: ignore[attr-defined]

    page.on("dialog", accept)
    boxes = page.locator('input[name="ids"]')
    boxes.nth(1).check()
    boxes.nth(2).check()
    page.get_by_role("button", name="Purge the chosen").click()
    expect(page.locator("#answer")).to_have_text("2 thrown away.")
    expect(page.locator("#letters tbody tr")).to_have_count(before - 2)
    assert asked == ["Throw 2 letters away for good?"]
    page.locator('input[name="ids"]').nth(1).check()
    page.get_by_role("button", name="Requeue the chosen").click()
    expect(page.locator("#answer")).to_have_text("1 requeued.")
    expect(page.locator("#letters tbody tr")).to_have_count(before - 3)


def test_the_page_of_consumers_follows_them(site: Site, open_page: OpenPage) -> None:
    page = open_page("/consumers", scopes=(Scope.READ,))
    expect(page.get_by_role("row", name=re.compile("^indexer, "))).to_be_visible()
    with connect(site.database_url) as connection:
        connection.execute("SET application_name = 'late-comer'")
        connection.execute("SELECT ack_articles(ARRAY(SELECT md5 FROM claim_pending_articles(1)))")
    expect(page.get_by_role("row", name=re.compile("^late-comer, "))).to_be_visible(timeout=PATIENCE_MS)


def test_dead_articles_say_why(open_page: OpenPage) -> None:
    page = open_page("/articles?tab=dead", scopes=(Scope.READ,))
    expect(page.locator(f'tr[data-key="{DEAD}"]')).to_contain_text("the model refused it")
