"""What consumers do over HTTP: claims that wait, leases, acknowledgements, and what becomes of those who go away."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import httpx
import pytest

from services.admin.actor import Scope
from services.api import arrivals
from services.api.app import make_app
from services.api.arrivals import Arrivals
from services.api.models.claims import ClaimedArticle
from services.api.resources import Resources
from tests.integration.api.conftest import Caller
from tests.integration.consumers.test_pending_articles import (
    Connection,
    change_text,
    claim,
    connect,
    dead,
    fill,
    let_time_pass,
    pending,
)
from tests.integration.waiting import BLOCKED

PATIENCE = 30


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        yield connection


@pytest.fixture
def api(api: httpx.AsyncClient) -> httpx.AsyncClient:
    api.timeout = PATIENCE
    return api


async def post(api: httpx.AsyncClient, verb: str, body: Any = None, **query: Any) -> dict[str, Any]:
    answer = await api.post(f"/api/articles/{verb}", json=body, params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def claimed(api: httpx.AsyncClient, most: int = 50, **query: Any) -> list[dict[str, Any]]:
    articles: list[dict[str, Any]] = (await post(api, "claim", {"max": most}, **query))["articles"]
    return articles


async def claim_waits(resources: Resources, number: int = 1) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(resources.arrivals._waiting) != number:
            await asyncio.sleep(0.01)


async def listens(db: Connection) -> None:
    async with asyncio.timeout(PATIENCE):
        while not db.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND query = 'LISTEN feedmill_pending'"
        ).rowcount:
            await asyncio.sleep(0.01)


def held(articles: Sequence[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"md5": article["md5"], "lease_id": article["lease_id"]} for article in articles]


def audited(db: Connection) -> list[tuple[Any, ...]]:
    rows = db.execute(
        "SELECT actor, action, details->>'articles' AS n, details->>'done' AS done FROM audit_log ORDER BY id"
    )
    return [tuple(row.values()) for row in rows]


async def test_an_article_goes_its_way_with_every_call_repeated(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 5)
    articles = await claimed(api, 4)
    assert [article["md5"] for article in articles] == md5s[:4]
    columns = db.execute("SELECT * FROM pending_articles").fetchall()[0].keys()
    assert articles[0].keys() == columns - {"claimed_hash", "last_error"}
    done = {"articles": [{"md5": article["md5"], "content_hash": article["content_hash"]} for article in articles[:1]]}
    assert await post(api, "ack", done) == {"acknowledged": 1, "still_pending": []}
    assert await post(api, "ack", done) == {"acknowledged": 0, "still_pending": []}
    for _ in range(2):
        renewed = await post(api, "renew", {"articles": held(articles[1:])})
        assert sorted(renewed["held"]) == sorted(md5s[1:4])
    failure = {"articles": held(articles[1:2]), "error": "a NUL", "retry_after_seconds": 60}
    (counted,) = (await post(api, "fail", failure))["failed"]
    assert (counted["md5"], counted["retry_count"]) == (md5s[1], 1)
    assert await post(api, "fail", failure) == {"failed": []}
    assert await post(api, "release", {"articles": held(articles[2:3])}) == {"released": 1}
    assert await post(api, "release", {"articles": held(articles[2:3])}) == {"released": 0}
    assert [article["md5"] for article in await claimed(api)] == [md5s[2], md5s[4]]
    assert audited(db) == []
    row = db.execute("SELECT last_error FROM pending_articles WHERE retry_count = 1").fetchone()
    assert row == {"last_error": "a NUL"}


async def test_a_lease_that_was_lost_protects_the_next_holder(api: httpx.AsyncClient, db: Connection) -> None:
    fill(db, 2)
    old = await claimed(api)
    let_time_pass(db)
    (new, _) = await claimed(api)
    assert (await post(api, "renew", {"articles": held(old)}))["held"] == []
    assert (await post(api, "fail", {"articles": held(old), "error": "late"}))["failed"] == []
    assert (await post(api, "release", {"articles": held(old)}))["released"] == 0
    assert (await post(api, "renew", {"articles": [{"md5": new["md5"]}]}))["held"] == [new["md5"]]  # anybody's


async def test_a_text_that_changed_stays_pending_and_the_answer_says_so(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 2)
    old = await claimed(api)
    change_text(db)
    done = [{"md5": article["md5"], "content_hash": article["content_hash"]} for article in old]
    assert await post(api, "ack", {"articles": done}) == {"acknowledged": 0, "still_pending": sorted(md5s)}
    again = await claimed(api)
    assert {article["revision"] for article in again} == {1}
    assert (await post(api, "ack", {"articles": [{"md5": md5} for md5 in md5s]}))["acknowledged"] == 2


async def test_the_last_failure_and_the_last_expiry_make_an_article_dead(
    api: httpx.AsyncClient, db: Connection
) -> None:
    md5s = fill(db, 2)
    articles = await claimed(api, 1)
    answer = await post(api, "fail", {"articles": held(articles), "error": "no", "max_failures": 1})
    assert answer["failed"] == [{"md5": md5s[0], "retry_count": 1, "retry_at": None}]
    await claimed(api, 1)
    let_time_pass(db)
    assert (await post(api, "claim", {"max_expiries": 1}))["articles"] == []
    assert {row["error"] for row in dead(db)} == {"no", "lease expired 1 times"}


async def test_the_dead_are_made_and_revived_by_hand_and_the_log_says_who(
    api: httpx.AsyncClient, caller: Caller, db: Connection
) -> None:
    md5s = fill(db, 3)
    caller.scopes = {Scope.CONSUME}
    assert await post(api, "bury", {"md5s": md5s, "reason": "not news"}) == {"buried": 3}
    assert {row["error"] for row in dead(db)} == {"not news"}
    assert (await api.post("/api/articles/revive", json={"all": True})).status_code == 403
    caller.scopes = {Scope.ADMIN}
    assert await post(api, "revive", {"md5s": [md5s[0], "0" * 32]}) == {"revived": 1}
    assert await post(api, "revive", {"all": True}) == {"revived": 2}
    assert await post(api, "ack", {"articles": [{"md5": md5s[0]}], "reason": "by hand"})
    who = "test fm_test"
    assert audited(db) == [
        (who, "article.bury", "3", "3"),
        (who, "article.revive", "2", "1"),
        (who, "article.revive", "2", "2"),
        (who, "article.ack", "1", "1"),
    ]


async def test_consumers_calls_are_for_the_scope_consume(
    api: httpx.AsyncClient, caller: Caller, db: Connection
) -> None:
    caller.scopes = {Scope.READ, Scope.WRITE}
    bodies: dict[str, Any] = {"claim": {}, "bury": {"md5s": []}, "revive": {"all": True}} | {
        verb: {"articles": []} for verb in ("ack", "fail", "renew", "release")
    }
    assert [(await api.post(f"/api/articles/{verb}", json=body)).status_code for verb, body in bodies.items()] == [
        403
    ] * 7
    caller.scopes = {Scope.CONSUME}
    statuses = [(await api.post(f"/api/articles/{verb}", json=body)).status_code for verb, body in bodies.items()]
    assert statuses == [200, 200, 403, 200, 200, 200, 200]


async def test_a_claim_that_waits_is_woken_by_the_commit_and_not_by_the_clock(
    api: httpx.AsyncClient, resources: Resources, db: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "LOOK_SECONDS", 3600.0)
    waiting = asyncio.create_task(claimed(api, wait=30))
    await claim_waits(resources)
    await listens(db)
    await asyncio.sleep(0.1)  # its look at the beginning is over
    md5s = await asyncio.to_thread(fill, db, 3)
    async with asyncio.timeout(PATIENCE):
        assert [article["md5"] for article in await waiting] == md5s


async def test_articles_that_return_are_found_without_a_notification(
    api: httpx.AsyncClient, resources: Resources, db: Connection
) -> None:
    md5s = fill(db, 1)
    (article,) = await claimed(api)
    waiting = asyncio.create_task(claimed(api, wait=30))
    await claim_waits(resources)
    let_time_pass(db)
    assert [article["md5"] for article in await waiting] == md5s
    waiting = asyncio.create_task(claimed(api, wait=30))
    await claim_waits(resources)
    assert (await post(api, "release", {"articles": held([article])}))["released"] == 0  # it has a new lease
    assert (await post(api, "release", {"articles": [{"md5": md5s[0]}]}))["released"] == 1
    assert len(await waiting) == 1


async def test_a_wait_ends_empty_when_its_time_is_over(api: httpx.AsyncClient, db: Connection) -> None:
    assert await claimed(api, wait=0.2) == []
    assert await claimed(api, wait=0) == []
    assert await post(api, "claim") == {"articles": []}


async def test_two_hundred_wait_and_each_article_wakes_one(
    api: httpx.AsyncClient, resources: Resources, db: Connection
) -> None:
    waiting = [asyncio.create_task(claimed(api, 1, wait=30)) for _ in range(200)]
    await claim_waits(resources, 200)
    await asyncio.to_thread(fill, db, 50)
    async with asyncio.timeout(PATIENCE):
        while sum(task.done() for task in waiting) < 50:
            await asyncio.sleep(0.01)
    connections = db.execute("SELECT FROM pg_stat_activity WHERE datname = current_database()").rowcount
    assert connections <= resources.settings.api_connections + 2  # one that listens, and the test's own
    await asyncio.to_thread(fill, db, 150, 51)
    async with asyncio.timeout(PATIENCE):
        found = await asyncio.gather(*waiting)
    counted = Counter(article["md5"] for articles in found for article in articles)
    assert len(counted) == 200
    assert set(counted.values()) == {1}


async def test_who_came_first_is_served_first(database_url: str) -> None:
    """Asked without HTTP: requests may overtake each other before they wait."""
    articles: list[int] = []
    served: list[int] = []

    async def look() -> list[int]:
        return [articles.pop()] if articles else []

    async def wait(n: int) -> None:
        await line.wait_for(look, 30, asyncio.get_running_loop().create_future())
        served.append(n)

    line = Arrivals(database_url, at_once=2)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as waiting:
        for n in range(20):
            waiting.create_task(wait(n))
            await asyncio.sleep(0)
        articles += range(10)
        while len(served) < 10:
            await asyncio.sleep(0.01)
        assert sorted(served) == list(range(10))
        articles += range(10)
    line.close()


async def test_who_goes_away_while_waiting_claims_nothing(
    api: httpx.AsyncClient, resources: Resources, db: Connection
) -> None:
    waiting = [asyncio.create_task(claimed(api, wait=30)) for _ in range(2)]
    await claim_waits(resources, 2)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    md5s = await asyncio.to_thread(fill, db, 3)
    assert [article["md5"] for article in await waiting[1]] == md5s


async def test_an_article_that_was_claimed_for_somebody_who_has_gone_is_given_back(
    resources: Resources, caller: Caller, db: Connection
) -> None:
    """The client goes away while the claim is being committed."""
    md5s = fill(db, 2)
    app = make_app(resources, caller.authenticate)
    gone = asyncio.Event()
    sent: list[Any] = []
    requests = iter([{"type": "http.request", "body": json.dumps({"max": 2}).encode(), "more_body": False}])

    async def receive() -> Any:
        if (message := next(requests, None)) is not None:
            return message
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/articles/claim",
        "raw_path": b"/api/articles/claim",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "headers": [(b"content-type", b"application/json"), (b"host", b"feedmill")],
        "server": ("feedmill", 80),
        "client": None,
        "http_version": "1.1",
        "asgi": {"version": "3.0"},
    }
    with connect(db.info.dsn + f" password={db.info.password}") as blocker:
        blocker.autocommit = False
        blocker.execute("LOCK pending_articles IN SHARE MODE")
        task = asyncio.create_task(app(scope, receive, send))
        async with asyncio.timeout(PATIENCE):
            while not db.execute(BLOCKED).rowcount:
                await asyncio.sleep(0.01)
        gone.set()
        await asyncio.sleep(0.05)
        blocker.rollback()
    await asyncio.wait_for(task, PATIENCE)
    rows = db.execute("SELECT lease_id, claimed_until IS NULL AS untouched, expiries FROM pending_articles").fetchall()
    assert [tuple(row.values()) for row in rows] == [(None, False, 0)] * 2
    assert {row["md5"] for row in claim(db)} == set(md5s)


async def test_a_stop_answers_all_waits_at_once(api: httpx.AsyncClient, resources: Resources, db: Connection) -> None:
    waiting = [asyncio.create_task(claimed(api, wait=30)) for _ in range(20)]
    await claim_waits(resources, 20)
    resources.arrivals.close()
    assert await asyncio.wait_for(asyncio.gather(*waiting), 20) == [[]] * 20
    assert await claimed(api, wait=30) == []


async def test_a_lost_connection_of_the_listener_is_made_again(
    api: httpx.AsyncClient, resources: Resources, db: Connection
) -> None:
    for start in (1, 2):
        waiting = asyncio.create_task(claimed(api, wait=30))
        await claim_waits(resources)
        await listens(db)
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'feedmill arrivals'"
        )
        await asyncio.to_thread(fill, db, 1, start)
        assert len(await waiting) == 1


MD5 = "0" * 32
HELD = {"articles": [{"md5": MD5, "lease_id": str(uuid4())}]}


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("claim", {"max": 0}),
        ("claim", {"max": 1001}),
        ("claim", {"max": 2**70}),
        ("claim", {"lease_seconds": 0}),
        ("claim", {"lease_seconds": 1e300}),
        ("claim", {"max_expiries": 2**31}),
        ("claim", {"more": 1}),
        ("claim", []),
        ("ack", {}),
        ("ack", {"articles": [{"md5": "x"}]}),
        ("ack", {"articles": [{"md5": MD5 + "\n"}]}),
        ("ack", {"articles": [{"md5": MD5, "content_hash": "\0"}]}),
        ("ack", {"articles": [{"md5": MD5}] * 1001}),
        ("fail", HELD | {"error": "x" * 100_001}),
        ("fail", HELD | {"retry_after_seconds": -1}),
        ("fail", HELD | {"max_failures": 0}),
        ("fail", {"articles": [{"md5": MD5, "lease_id": "x"}]}),
        ("renew", {"articles": [{"md5": MD5}, *HELD["articles"]]}),
        ("renew", HELD | {"lease_seconds": 86_401}),
        ("release", {"articles": None}),
        ("bury", {"md5s": ["x" * 32]}),
        ("revive", {}),
        ("revive", {"md5s": [MD5], "all": True}),
    ],
)
async def test_hostile_bodies_are_refused(api: httpx.AsyncClient, db: Connection, verb: str, body: Any) -> None:
    answer = await api.post(f"/api/articles/{verb}", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"articles": NaN}', b'{"lease_seconds": Infinity}', b"\xff", b"[" * 100_000, b'{"\\ud800": 1}'],
)
@pytest.mark.parametrize("verb", ["claim", "fail"])
async def test_bodies_that_are_no_json_are_no_bug(
    api: httpx.AsyncClient, db: Connection, verb: str, content: bytes
) -> None:
    answer = await api.post(f"/api/articles/{verb}", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in ({200} if (verb, content) == ("claim", b"") else {400, 422})


async def test_texts_of_any_kind_are_stored_or_refused(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 1)
    body = b'{"articles": [{"md5": "%s"}], "error": "\\ud800 %s"}' % (md5s[0].encode(), b"\\u0000\\u202e")
    answer = await api.post("/api/articles/fail", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in {200, 422}
    assert len(pending(db)) == 1


@pytest.mark.parametrize("wait", ["-1", "31", "nan", "inf", "x"])
async def test_a_wait_is_bounded(api: httpx.AsyncClient, db: Connection, wait: str) -> None:
    assert (await api.post("/api/articles/claim", params={"wait": wait})).status_code == 422


def test_consumers_get_the_same_columns_over_http_as_over_sql() -> None:
    from dataclasses import fields

    from feedmill_client import Article

    assert list(ClaimedArticle.model_fields) == [field.name for field in fields(Article)]
