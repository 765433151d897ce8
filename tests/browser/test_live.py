"""Pages follow what happens, in the browser's language, and say so when they can't."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, Response, expect

from local.servers import Servers
from services.admin.actor import Scope
from services.admin.registry import NewFeed, add_feed, connect
from tests.browser.conftest import Complaints, OpenPage, Site
from tests.conftest import own_database, own_vhost
from tests.e2e.api_process import ApiProcess


@pytest.fixture(scope="module")
def empty(servers: Servers, site: Site) -> Iterator[Site]:
    """An API that is open to this machine, without feeds."""
    with (
        own_database(servers) as database_url,
        own_vhost(servers) as amqp_url,
        ApiProcess(database_url, amqp_url) as api,
    ):
        yield Site(api, database_url, amqp_url)


@pytest.fixture
def forgive(complaints: Complaints) -> Iterator[None]:
    """For tests in which the browser logs answers that are errors, or did not come."""
    yield
    complaints.clear()


@pytest.mark.usefixtures("forgive")
def test_without_feeds_the_overview_says_what_to_do_first(empty: Site, open_page: OpenPage) -> None:
    page = open_page(f"{empty.url}/", scopes=())
    assert page.get_by_text("open, no login").is_visible()
    expect(page.get_by_role("heading", name="What to do first")).to_be_visible()
    page.get_by_label("Address of a feed or a page").fill("http://10.1.2.3/feed.xml")
    page.keyboard.press("Enter")
    expect(page.locator("#first output")).to_contain_text("10.1.2.3")  # why it is refused


def test_a_page_follows_and_keeps_what_a_person_did(empty: Site, open_page: OpenPage) -> None:
    with connect(empty.database_url) as connection:
        add_feed(connection, NewFeed("http://first.example/feed"))
    page = open_page(f"{empty.url}/", scopes=())
    count = page.locator("#feeds dd").first
    expect(count).to_have_text("1")
    page.evaluate("window.mark = 1")
    link = page.get_by_role("link", name="Feeds").last
    link.focus()
    with connect(empty.database_url) as connection:
        add_feed(connection, NewFeed("http://second.example/feed"))
    expect(count).to_have_text("2")
    assert page.evaluate("window.mark") == 1  # not loaded anew
    expect(link).to_be_focused()


@pytest.mark.usefixtures("forgive")
def test_a_page_says_that_the_api_is_away_and_when_it_is_back(empty: Site, open_page: OpenPage) -> None:
    page = open_page(f"{empty.url}/", scopes=())
    expect(page.locator("#banner")).to_be_hidden()
    empty.api.kill()
    expect(page.get_by_role("status").first).to_contain_text("The API does not answer.")
    empty.api.start()
    expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.usefixtures("forgive")
def test_a_page_says_that_the_api_hangs(empty: Site, open_page: OpenPage) -> None:
    page = open_page(f"{empty.url}/", scopes=())
    with page.expect_event("response", lambda answer: answer.url.endswith("/events")):
        page.reload()
    os.kill(empty.api.pid, signal.SIGSTOP)
    try:
        expect(page.locator("#banner")).to_contain_text("The API does not answer.")
    finally:
        os.kill(empty.api.pid, signal.SIGCONT)
    expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.usefixtures("forgive")
def test_a_page_without_events_looks_by_itself_and_raises_no_alarm(open_page: OpenPage) -> None:
    page = open_page("/feeds")
    page.route("**/events", lambda route: route.fulfill(status=503))
    page.clock.install()

    def looks(answer: Response) -> bool:
        return answer.url.endswith("/feeds") and answer.request.resource_type == "fetch"

    with page.expect_event("response", looks):
        page.reload()
    page.clock.run_for(10_000)
    expect(page.locator("#banner")).to_be_hidden()
    with page.expect_event("response", looks):
        page.clock.run_for(30_000)
    expect(page.locator("#banner")).to_be_hidden()


@pytest.mark.parametrize(
    ("locale", "looks"),
    [("de-DE", r"\d\d\.\d\d\.\d{4}, \d\d:\d\d"), ("en-GB", r"\d{1,2} \w{3,4} \d{4}, \d\d:\d\d")],
)
def test_moments_are_in_the_language_of_the_browser_and_utc_on_hover(
    locale: str, looks: str, open_page: OpenPage
) -> None:
    time = hours(open_page("/", locale=locale)).first
    assert re.fullmatch(looks, time.inner_text())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:00:00 UTC", time.get_attribute("title") or "")


def test_without_scripts_a_page_reads_well(open_page: OpenPage) -> None:
    page = open_page("/", java_script_enabled=False)
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:00 UTC", hours(page).first.inner_text())


def hours(page: Page) -> Locator:
    page.get_by_text("The same by the hour").click()
    return page.locator("#hours time")


def test_a_login_that_ended_leads_to_the_login(site: Site, open_page: OpenPage) -> None:
    page = open_page("/", scopes=(Scope.READ,))
    token = page.locator('meta[name="csrf-token"]').get_attribute("content") or ""
    assert page.context.request.delete("/api/session", headers={"X-CSRF-Token": token}).ok
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")  # as when a person comes back
    page.wait_for_url(f"{site.url}/login")
