"""Tokens over HTTP and by command."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from datetime import datetime

import httpx
import pytest
from typer.testing import CliRunner, Result

from services.admin.access import tokens
from services.admin.access.remembered import TRUSTED_SECONDS
from services.admin.access.tokens import TOKEN, new_token, secret_hash
from services.admin.actor import Scope
from services.admin.registry import connect
from services.api.access.bearer import TokenAccess
from services.api.access.serving import housekeeping
from services.api.app import make_app
from services.api.resources import Resources
from services.cli.__main__ import app
from services.cli.calls.within import WithinProcess
from shared.observability.secrets import mask_credentials
from tests.integration.api.conftest import MakeToken, bearer


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_token_is_made_used_and_revoked(api: httpx.AsyncClient, resources: Resources) -> None:
    clock = Clock()
    access = TokenAccess(resources.database, clock=clock)
    made = await api.post("/api/tokens", json={"name": "indexer", "scopes": ["read"]})
    assert made.status_code == 201
    row = made.json()
    assert TOKEN.fullmatch(row["token"])
    assert row["token"].startswith(row["prefix"])
    assert row["expires_at"] is not None
    async with httpx.AsyncClient(
        transport=WithinProcess(make_app(resources, access.authenticate)), base_url="http://localhost"
    ) as client:
        headers = bearer(row["token"])
        me = (await client.get("/api/me", headers=headers)).json()
        assert me == {
            "name": f"indexer {row['prefix']}",
            "token_id": row["id"],
            "scopes": ["read"],
            "expires_at": row["expires_at"],
        }
        revoked = await api.delete(f"/api/tokens/{row['id']}")
        assert revoked.json()["state"] == "revoked"
        assert (await api.delete(f"/api/tokens/{row['id']}")).json() == revoked.json()
        clock.now += TRUSTED_SECONDS
        assert (await client.get("/api/me", headers=headers)).status_code == 401
    actions = [row["action"] for row in (await api.get("/api/audit")).json()["items"]]
    assert actions == ["token.revoke", "token.create"]
    created = (await api.get("/api/audit", params={"action": "token.create"})).json()["items"][0]["details"]
    assert "T" in created["expires_at"]
    assert datetime.fromisoformat(created["expires_at"]) == datetime.fromisoformat(row["expires_at"])


async def test_only_a_hash_of_the_secret_is_kept(
    resources: Resources, make_token: MakeToken, api: httpx.AsyncClient
) -> None:
    token = await make_token(Scope.READ)
    secret = token.rpartition("_")[2]
    async with resources.database.transaction() as connection:
        for table in ("api_tokens", "audit_log"):
            cursor = await connection.execute(f"SELECT to_jsonb(t)::text AS row FROM {table} t".encode())
            assert not [row for row in await cursor.fetchall() if secret in row["row"]]
        cursor = await connection.execute("SELECT secret_hash FROM api_tokens")
        assert (await cursor.fetchone() or {})["secret_hash"] == secret_hash(token)
    assert secret not in (await api.get("/api/tokens")).text


async def test_a_token_that_has_expired_is_refused(
    closed: httpx.AsyncClient, resources: Resources, make_token: MakeToken
) -> None:
    token = await make_token(Scope.READ, lifetime_seconds=3600)
    async with resources.database.transaction() as connection:
        await connection.execute("UPDATE api_tokens SET expires_at = now()")
    assert (await closed.get("/api/me", headers=bearer(token))).status_code == 401


async def test_the_last_use_is_written_beside_requests(resources: Resources, make_token: MakeToken) -> None:
    access = TokenAccess(resources.database)
    token = await make_token(Scope.READ)
    await access.check_token(f"Bearer {token}", None)

    async def last_used() -> object:
        async with resources.database.transaction() as connection:
            row = (await tokens.list_tokens(connection, name=None, limit=1, after=None))[0]
        return row["last_used_at"]

    assert await last_used() is None
    await access.note_uses()
    first = await last_used()
    assert first is not None
    await access.check_token(f"Bearer {token}", None)
    await access.note_uses()
    assert await last_used() == first  # at most once a minute


async def test_what_is_old_is_swept(resources: Resources, make_token: MakeToken, api: httpx.AsyncClient) -> None:
    await make_token(Scope.READ)
    await make_token(Scope.READ)
    settings = resources.settings.model_copy(update={"audit_days": 30.0})
    async with resources.database.transaction() as connection:
        for days, id_ in ((31, 1), (29, 2)):
            ago = f"now() - interval '{days} days'"
            await connection.execute(f"UPDATE api_tokens SET revoked_at = {ago} WHERE id = {id_}".encode())
            await connection.execute(f"UPDATE audit_log SET at = {ago} WHERE id = {id_}".encode())
    for task in housekeeping(settings, resources.database, TokenAccess(resources.database)):
        await task.run_once()
        assert task.check() is None
    assert [row["id"] for row in (await api.get("/api/tokens")).json()["items"]] == [2]
    assert [row["id"] for row in (await api.get("/api/audit")).json()["items"]] == [2]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "", "scopes": ["read"]},
        {"name": "a\nb", "scopes": ["read"]},
        {"name": "a", "scopes": []},
        {"name": "a", "scopes": ["root"]},
        {"name": "a", "scopes": ["read"], "lifetime_seconds": 1},
        {"name": "a", "scopes": ["read"], "lifetime_seconds": 2**70},
        {"name": "a", "scopes": ["read"], "token": "mine"},
        {"name": "a" * 101, "scopes": ["read"]},
        ["a"],
        None,
    ],
)
async def test_what_can_be_no_token_is_refused(api: httpx.AsyncClient, body: object) -> None:
    assert (await api.post("/api/tokens", json=body)).status_code == 422


async def test_two_tokens_share_no_name(api: httpx.AsyncClient) -> None:
    wanted = {"name": "one", "scopes": ["read"]}
    answers = await asyncio.gather(*(api.post("/api/tokens", json=wanted) for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    (made,) = [answer.json() for answer in answers if answer.status_code == 201]
    await api.delete(f"/api/tokens/{made['id']}")
    assert (await api.post("/api/tokens", json=wanted)).status_code == 201


async def test_a_token_that_is_not_there_is_not_revoked(api: httpx.AsyncClient) -> None:
    assert (await api.delete("/api/tokens/17")).status_code == 404
    for wrong in ("0", "-1", "x", str(2**63)):
        assert (await api.delete(f"/api/tokens/{wrong}")).status_code == 422


async def test_the_audit_log_is_read_page_by_page_and_by_filters(api: httpx.AsyncClient) -> None:
    for number in range(5):
        await api.post("/api/tokens", json={"name": f"t{number}", "scopes": ["read"]})
    await api.delete("/api/tokens/3")
    seen, cursor = [], None
    while True:
        page = (await api.get("/api/audit", params={"limit": 2} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [(row["action"], row["target"]) for row in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [("token.revoke", "3"), *(("token.create", str(n)) for n in (5, 4, 3, 2, 1))]

    async def count(**query: str) -> int:
        return len((await api.get("/api/audit", params=query)).json()["items"])

    assert await count(action="token.revoke") == 1
    assert await count(target="3") == 2
    assert await count(actor="test fm_test") == 6
    assert await count(actor="somebody") == 0
    assert await count(since="2999-01-01T00:00:00Z") == 0
    assert await count(since="2000-01-01T00:00:00Z", target="3") == 2
    for wrong in ({"since": "2000-01-01T00:00:00"}, {"cursor": "WyJ4IiwxXQ"}, {"actor": "\0"}):
        assert (await api.get("/api/audit", params=wrong)).status_code == 422


def test_a_token_in_a_log_line_is_masked() -> None:
    token = new_token()
    masked = mask_credentials(f"cannot use {token}, sorry")
    assert masked == f"cannot use {token[:11]}_***, sorry"


def test_the_first_token_is_made_by_command(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)

    def feedmill(*arguments: str) -> Result:
        return CliRunner().invoke(app, arguments)

    made = feedmill("token", "create", "first", "--scope", "admin", "--expires", "90d")
    assert made.exit_code == 0, made.stderr
    assert TOKEN.fullmatch(made.stdout.strip())
    assert "shown once" in made.stderr
    listed = json.loads(feedmill("token", "list", "--json").stdout)
    assert [(row["name"], row["scopes"], row["state"]) for row in listed] == [("first", ["admin"], "good")]
    assert feedmill("token", "revoke", "first").exit_code == 0
    assert json.loads(feedmill("token", "list", "--json").stdout) == []
    command = [sys.executable, "-m", "services.cli", "token", "revoke", "first"]
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    assert again.returncode == 1
    assert "feedmill token list" in again.stderr
    audited = json.loads(feedmill("audit", "--json").stdout)
    assert [row["action"] for row in audited] == ["token.revoke", "token.create"]
    assert audited[0]["actor"].startswith("command ")
    with connect(database_url) as connection:
        assert connection.execute("SELECT count(*) AS n FROM api_tokens").fetchone() == {"n": 1}


async def test_no_token_is_logged(
    closed: httpx.AsyncClient, make_token: MakeToken, caplog: pytest.LogCaptureFixture
) -> None:
    good, wrong = await make_token(Scope.READ), new_token()
    with caplog.at_level(logging.DEBUG):
        await closed.get("/api/me", headers=bearer(good))
        await closed.get("/api/me", headers=bearer(wrong))
        await closed.get(f"/api/{good}")
        await closed.get("/api/me", params={"token": good})
    records = " ".join(mask_credentials(str(vars(record))) for record in caplog.records)
    assert "/api/me" in records
    assert good not in records
    assert wrong not in records
