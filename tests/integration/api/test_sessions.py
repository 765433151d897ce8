"""Logins of browsers: the cookie, CSRF, and requests that other pages make."""

from __future__ import annotations

import httpx
import pytest

from services.admin.access import sessions
from services.admin.access.tokens import new_token, secret_hash
from services.admin.actor import Scope
from services.api.access.bearer import TokenAccess
from services.api.access.cookies import LOOPBACK_NAME, SECURE_NAME
from services.api.app import make_app
from services.api.resources import Resources
from services.cli.calls.within import WithinProcess
from tests.integration.api.conftest import Caller, MakeToken, bearer

WANTED = {"name": "made by cookie", "scopes": ["read"]}


async def log_in(client: httpx.AsyncClient, token: str) -> str:
    """Return the CSRF token; the client keeps the cookie."""
    answer = await client.post("/api/session", json={"token": token})
    assert answer.status_code == 201
    return str(answer.json()["csrf_token"])


async def test_a_login_sets_a_cookie_that_no_script_reads(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    answer = await closed.post("/api/session", json={"token": await make_token(Scope.ADMIN)})
    cookie = answer.headers["set-cookie"]
    name, _, rest = cookie.partition("=")
    assert name == SECURE_NAME
    assert {part.strip() for part in rest.split(";")[1:]} >= {"HttpOnly", "Secure", "SameSite=lax", "Path=/"}
    assert "domain" not in cookie.lower()
    me = await closed.get("/api/me")
    assert me.json()["scopes"] == ["admin"]


async def test_a_login_over_http_is_for_this_machine(resources: Resources, make_token: MakeToken) -> None:
    token = await make_token(Scope.ADMIN)
    app = make_app(resources, TokenAccess(resources.database).authenticate)
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://localhost:8080") as client:
        answer = await client.post("/api/session", json={"token": token})
        assert answer.headers["set-cookie"].startswith(f"{LOOPBACK_NAME}=")
        assert "Secure" not in answer.headers["set-cookie"]
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="http://feeds.example") as client:
        refused = await client.post("/api/session", json={"token": token})
        assert refused.status_code == 403
        assert "https" in refused.json()["detail"]


async def test_a_change_by_cookie_needs_the_csrf_token(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    csrf = await log_in(closed, await make_token(Scope.ADMIN))
    assert (await closed.get("/api/session")).json()["csrf_token"] == csrf
    for headers in ({}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}):
        answer = await closed.post("/api/tokens", json=WANTED, headers=headers)
        assert answer.status_code == 403
        assert "X-CSRF-Token" in answer.json()["detail"]
    answer = await closed.post("/api/tokens", json=WANTED, headers={"X-CSRF-Token": csrf})
    assert answer.status_code == 201


OTHER_PAGES = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://feeds.example.evil.example"},
    {"Origin": "https://feeds.example:8443"},
    {"Origin": "file://feeds.example"},
    {"Origin": "https://[::"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://feeds.example"},
]


@pytest.mark.parametrize("headers", OTHER_PAGES)
async def test_a_page_of_another_origin_changes_nothing(
    closed: httpx.AsyncClient, make_token: MakeToken, headers: dict[str, str]
) -> None:
    token = await make_token(Scope.ADMIN)
    csrf = await log_in(closed, token)
    answer = await closed.post("/api/tokens", json=WANTED, headers=headers | {"X-CSRF-Token": csrf})
    assert answer.status_code == 403
    assert "another origin" in answer.json()["detail"]
    login = await closed.post("/api/session", json={"token": token}, headers=headers)
    assert login.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "https://feeds.example", "Sec-Fetch-Site": "same-origin"}, {"Origin": "https://FEEDS.example"}],
)
async def test_a_page_of_ours_may_change_things(
    closed: httpx.AsyncClient, make_token: MakeToken, headers: dict[str, str]
) -> None:
    csrf = await log_in(closed, await make_token(Scope.ADMIN))
    answer = await closed.post("/api/tokens", json=WANTED, headers=headers | {"X-CSRF-Token": csrf})
    assert answer.status_code == 201


async def test_a_logout_ends_the_session_and_not_the_token(
    closed: httpx.AsyncClient, resources: Resources, make_token: MakeToken
) -> None:
    token = await make_token(Scope.READ)
    csrf = await log_in(closed, token)
    answer = await closed.delete("/api/session", headers={"X-CSRF-Token": csrf})
    assert answer.status_code == 204
    assert not closed.cookies
    assert await count_sessions(resources) == 0
    assert (await closed.get("/api/me", headers=bearer(token))).status_code == 200
    assert (await closed.get("/api/me")).status_code == 401


async def test_what_ends_in_this_process_ends_at_once(closed: httpx.AsyncClient, make_token: MakeToken) -> None:
    admin = bearer(await make_token(Scope.ADMIN))
    made = (await closed.post("/api/tokens", json=WANTED, headers=admin)).json()
    csrf = await log_in(closed, made["token"])
    ended = {"Cookie": f"{SECURE_NAME}={closed.cookies[SECURE_NAME]}"}
    assert (await closed.get("/api/me")).status_code == 200
    assert (await closed.delete("/api/session", headers={"X-CSRF-Token": csrf})).status_code == 204
    assert (await closed.get("/api/me", headers=ended)).status_code == 401
    await log_in(closed, made["token"])
    assert (await closed.get("/api/me")).status_code == 200
    assert (await closed.get("/api/me", headers=bearer(made["token"]))).status_code == 200
    assert (await closed.delete(f"/api/tokens/{made['id']}", headers=admin)).status_code == 200
    assert (await closed.get("/api/me")).status_code == 401
    assert (await closed.get("/api/me", headers=bearer(made["token"]))).status_code == 401


async def test_a_session_ends_with_its_token(
    closed: httpx.AsyncClient, resources: Resources, api: httpx.AsyncClient
) -> None:
    made = (await api.post("/api/tokens", json={"name": "anna", "scopes": ["read"]})).json()
    await log_in(closed, made["token"])
    secret = closed.cookies[SECURE_NAME]
    async with resources.database.transaction() as connection:
        assert await sessions.find_session(connection, secret_hash(secret))
        await connection.execute("UPDATE api_tokens SET expires_at = now()")
        assert await sessions.find_session(connection, secret_hash(secret)) is None
    await api.delete(f"/api/tokens/{made['id']}")
    assert await count_sessions(resources) == 0
    assert (await closed.get("/api/me")).status_code == 401


async def test_a_session_that_is_used_goes_on_and_any_ends_after_a_week(
    resources: Resources, make_token: MakeToken
) -> None:
    app = make_app(resources, (access := TokenAccess(resources.database)).authenticate)
    async with httpx.AsyncClient(transport=WithinProcess(app), base_url="https://feeds.example") as client:
        await log_in(client, await make_token(Scope.READ))
        await set_ends(resources, "expires_at = now() + interval '1 hour'")
        await client.get("/api/me")
        await access.note_uses()
        assert await hours_left(resources) > 11
        await set_ends(
            resources, "created_at = now() - interval '167 hours', expires_at = now() + interval '0.5 hours'"
        )
        await client.get("/api/me")
        await access.note_uses()
        assert 0.5 < await hours_left(resources) <= 1.01
        await set_ends(resources, "expires_at = now()")
    app = make_app(resources, TokenAccess(resources.database).authenticate)
    async with httpx.AsyncClient(
        transport=WithinProcess(app), base_url="https://feeds.example", cookies=client.cookies
    ) as client:
        assert (await client.get("/api/me")).status_code == 401
    async with resources.database.transaction() as connection:
        await sessions.forget_sessions(connection)
    assert await count_sessions(resources) == 0


async def test_the_table_of_sessions_logs_nobody_in(
    closed: httpx.AsyncClient, resources: Resources, make_token: MakeToken
) -> None:
    csrf = await log_in(closed, await make_token(Scope.READ))
    secret = closed.cookies[SECURE_NAME]
    async with resources.database.transaction() as connection:
        cursor = await connection.execute("SELECT to_jsonb(s)::text AS row FROM api_sessions s")
        (row,) = await cursor.fetchall()
    assert secret not in row["row"]
    assert csrf not in row["row"]


@pytest.mark.parametrize(
    ("body", "status"), [({"token": new_token()}, 401), ({"token": "fm_x"}, 422), ({}, 422), ({"token": None}, 422)]
)
async def test_a_login_needs_a_good_token(closed: httpx.AsyncClient, body: dict[str, object], status: int) -> None:
    answer = await closed.post("/api/session", json=body)
    assert answer.status_code == status
    assert "set-cookie" not in answer.headers


async def test_a_command_has_no_login(api: httpx.AsyncClient, caller: Caller) -> None:
    caller.token_id = 0
    answer = await api.post("https://feedmill/api/session", json={"token": new_token()})
    assert answer.status_code == 403


async def count_sessions(resources: Resources) -> int:
    async with resources.database.transaction() as connection:
        row = await (await connection.execute("SELECT count(*) AS n FROM api_sessions")).fetchone()
    return int((row or {})["n"])


async def set_ends(resources: Resources, ends: str) -> None:
    async with resources.database.transaction() as connection:
        await connection.execute(f"UPDATE api_sessions SET {ends}".encode())


async def hours_left(resources: Resources) -> float:
    async with resources.database.transaction() as connection:
        cursor = await connection.execute(
            "SELECT extract(epoch FROM expires_at - now())::float8 AS s FROM api_sessions"
        )
        row = await cursor.fetchone()
    return float((row or {})["s"]) / 3600
