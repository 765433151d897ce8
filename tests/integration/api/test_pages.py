"""Pages over HTTP: who sees them, and what their answers forbid."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import AmqpDsn, PostgresDsn

from services.admin.access.tokens import new_token
from services.admin.actor import Scope
from services.admin.health.backlog import ARTICLES, Sample
from services.api.access.bearer import TokenAccess
from services.api.pages import events, find_pages
from services.api.pages.frame import NAVIGATION
from services.api.pages.warming import warm_up
from services.api.resources import Resources, open_database
from services.api.settings import ApiSettings
from services.cli.calls.within import WithinProcess
from tests.integration.api.conftest import MakeToken, app_on, bearer

OPEN = {"/login", "/static/{tag}/{name}"}
ROUTES = [route for router in find_pages() for route in router.routes if isinstance(route, APIRoute)]
PATHS = sorted(route.path for route in ROUTES if route.path not in OPEN)


async def test_a_page_needs_a_login_and_leads_there(closed: httpx.AsyncClient) -> None:
    assert "/" in PATHS
    for path in PATHS:
        answer = await closed.get(path, params={"q": "a b&c"})
        if path == "/events":
            assert answer.status_code == 401
            continue
        assert answer.status_code == 303, path
        location = urlsplit(answer.headers["location"])
        assert location.path == "/login"
        assert parse_qs(location.query)["next"] == [f"{path}?q=a+b%26c"]


async def test_who_may_only_drain_sees_no_page(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    token = bearer(await make_token(Scope.CONSUME))
    for path in PATHS:
        assert (await closed.get(re.sub("{.*?}", "1", path), headers=token)).status_code == 403, path


async def test_pages_change_nothing_and_are_in_no_document(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    assert all(route.methods == {"GET"} for route in ROUTES)
    token = bearer(await make_token(Scope.READ))
    document = (await closed.get("/api/openapi.json", headers=token)).json()
    assert all(path.startswith("/api/") for path in document["paths"])


@pytest.mark.parametrize("path", ["/", "/settings", "/login", "/no-such-page"])
async def test_a_page_is_kept_nowhere_framed_nowhere_and_runs_only_our_scripts(
    path: str, closed: httpx.AsyncClient, make_token: MakeToken
) -> None:
    answer = await closed.get(path, headers=bearer(await make_token(Scope.READ)))
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", answer.text)
    assert not re.findall(r"(?:src|href)=\"(?!/|#)", answer.text.replace('href="https://github.com', ""))
    assert len(answer.content) < 200_000


async def test_a_csrf_token_is_shown_to_its_session_alone(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    token = await make_token(Scope.READ)
    assert "csrf-token" not in (await closed.get("/settings", headers=bearer(token))).text
    given = (await closed.post("/api/session", json={"token": token})).json()["csrf_token"]
    page = (await closed.get("/settings")).text
    assert f'content="{given}"' in page
    assert token not in page
    assert "csrf-token" not in (await closed.get("/login")).text


async def test_files_are_kept_for_ever_under_a_name_that_changes_with_them(closed: httpx.AsyncClient) -> None:
    page = (await closed.get("/login")).text
    files = re.findall(r"\"(/static/[^\"]+)\"", page)
    assert {name.rpartition(".")[2] for name in files} == {"css", "js", "svg"}
    for name in files:
        assert "immutable" in (await closed.get(name)).headers["cache-control"]
    tag, name = files[0].split("/")[2:]
    assert (await closed.get(f"/static/{tag}x/{name}")).headers["cache-control"] == "no-store"
    for wrong in (f"/static/{tag}/nothing.js", f"/static/{tag}/..%2Fframe.py", f"/static/{tag}/page.js/x"):
        assert (await closed.get(wrong)).status_code == 404


async def test_without_the_database_a_page_says_what_to_do() -> None:
    settings = ApiSettings(database_url=PostgresDsn("postgresql://me:geheim@127.0.0.1:1/x"))
    async with open_database(settings).open() as database:
        access = TokenAccess(database)
        app = app_on(Resources(settings, database), access.authenticate, "away")
        async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://127.0.0.1") as client:
            answer = await client.get("/", headers=bearer(new_token()))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "<h1>This can&#39;t be shown now</h1>" in answer.text
    assert "PostgreSQL" in answer.text
    assert "geheim" not in answer.text


async def test_the_overview_draws_what_waited(
    closed: httpx.AsyncClient, resources: Resources, make_token: MakeToken
) -> None:
    now = datetime.now(UTC)
    for minute, waited in enumerate((0, 40, 12)):
        sample = Sample(now + timedelta(minutes=minute), {"fetcher": waited, ARTICLES: 0})
        resources.backlog._samples.append(sample)
    page = (await closed.get("/", headers=bearer(await make_token(Scope.READ)))).text
    assert "12 jobs that wait for the fetchers" in page
    assert "now 12, at most 40" in page
    assert "articles that wait for consumers</h3>" not in page  # none ever did


async def test_the_navigation_leads_to_pages(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    token = bearer(await make_token(Scope.READ))
    missing = [path for path, _ in NAVIGATION if (await closed.get(path, headers=token)).status_code != 200]
    assert missing == []


async def test_what_pages_show_is_there_before_the_first_visitor(resources: Resources) -> None:
    await warm_up(resources)
    assert resources.scene.last
    assert resources.draining.last


async def test_an_api_without_a_database_is_not_warm_and_runs() -> None:
    away = PostgresDsn("postgresql://feedmill@127.0.0.1:1/feedmill")
    settings = ApiSettings(database_url=away, amqp_url=AmqpDsn("amqp://127.0.0.1:1/"))
    async with open_database(settings).open() as database:
        resources = Resources(settings, database)
        await warm_up(resources)
        assert resources.draining.last is None


async def test_one_login_does_not_take_all_streams(
    closed: httpx.AsyncClient, make_token: MakeToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_OF_A_LOGIN", 0)
    answer = await closed.get("/events", headers=bearer(await make_token(Scope.READ)))
    assert answer.status_code == 429
    assert "0 pages of this login are open" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/feeds?q=%00", "/static/nonsense", "/articles?state=zz&feed=abc"])
async def test_a_browser_gets_a_page_in_place_of_a_problem(
    path: str, closed: httpx.AsyncClient, make_token: MakeToken
) -> None:
    headers = bearer(await make_token(Scope.READ)) | {"Accept": "text/html"}
    answer = await closed.get(path, headers=headers)
    assert answer.status_code in {400, 404, 422}
    assert answer.headers["content-type"].startswith("text/html")
    assert "<h1>" in answer.text
    assert (await closed.get("/static/nonsense", headers={"Accept": "*/*"})).json()["status"] in {401, 404}
