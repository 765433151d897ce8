"""The dashboard in Debian's Chromium: one API process, one browser and one set of data for all tests of this package.

The fixtures live as long as the package, not the session: Playwright's loop would be in the way of other tests' loops.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from local.servers import Servers
from services.admin.access.tokens import new_token, prefix_of, secret_hash
from services.admin.actor import Scope
from services.admin.registry import connect
from tests.browser.article_data import fill_letters
from tests.browser.data import fill
from tests.conftest import own_database, own_vhost
from tests.e2e.api_process import ApiProcess

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
LAPTOP = 1280
PATIENCE_MS = 90_000
"""A page that nothing tells of a change looks after half a minute, at figures that may be some seconds old."""

expect.set_options(timeout=PATIENCE_MS)


@dataclass(frozen=True)
class Site:
    """The API with its data. Tests that change data make their own, for all share it."""

    api: ApiProcess
    database_url: str
    amqp_url: str

    @property
    def url(self) -> str:
        return self.api.url

    def make_token(self, *scopes: Scope) -> str:
        token = new_token()
        with connect(self.database_url) as connection:
            connection.execute(
                "INSERT INTO api_tokens (name, prefix, secret_hash, scopes, created_by)"
                " VALUES (%s, %s, %s, %s, 'test')",
                [f"anna-{token[3:7]}", prefix_of(token), secret_hash(token), list(scopes)],
            )
        return token


@pytest.fixture(scope="package")
def site(servers: Servers) -> Iterator[Site]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: scripts/setup.sh --dev installs it on Debian")
    with own_database(servers) as database_url, own_vhost(servers) as amqp_url:
        fill(database_url)
        fill_letters(amqp_url)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")  # tests add feeds of servers of their own
            with ApiProcess(database_url, amqp_url, is_open=False) as api:
                yield Site(api, database_url, amqp_url)


@pytest.fixture(scope="package")
def browser(site: Site) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Complaints(list[str]):
    """What the browser said is wrong. A test that expects some empties it."""


OpenPage = Callable[..., Page]


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    found = Complaints()
    yield found
    assert not found


@pytest.fixture
def open_page(site: Site, browser: Browser, complaints: Complaints) -> Iterator[OpenPage]:
    """Opens a page: `open_page("/feeds", scopes=(Scope.READ,), width=360, dark=True)`; `scopes=()`: not logged in."""
    contexts = []

    def open_one(
        path: str,
        *,
        scopes: tuple[Scope, ...] = (Scope.ADMIN,),
        width: int = LAPTOP,
        dark: bool = False,
        **options: object,
    ) -> Page:
        context = browser.new_context(
            base_url=site.url,
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            **{"locale": "en-GB", "timezone_id": "Europe/Berlin"} | options,  # type: ignore[arg-type]
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        if scopes:
            answer = context.request.post("/api/session", data={"token": site.make_token(*scopes)})
            assert answer.ok, answer.text()
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type in {"error", "warning"} else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path)
        return page

    yield open_one
    for context in contexts:
        context.close()


@pytest.fixture
def page(open_page: OpenPage) -> Page:
    """The overview, seen by an admin."""
    return open_page("/")
