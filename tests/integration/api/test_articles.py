"""Articles over HTTP: lists, pages, filters, one article, counts and the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from services.admin.actor import Scope
from services.admin.articles import pending as admin
from services.api.resources import Resources
from shared.database.postgres import Connection as AsyncConnection
from tests.factories import make_entry, make_result
from tests.integration.api.conftest import Caller
from tests.integration.consumers.test_pending_articles import (
    Connection,
    claim,
    connect,
    fail,
    fill,
    keys,
)
from tests.integration.writer.writing import write


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group, tags) VALUES ('http://x/', 'x', '{News}')")
        yield connection


async def pages(api: httpx.AsyncClient, path: str, **query: Any) -> list[dict[str, Any]]:
    """Return the rows of all pages."""
    rows, cursor = [], None
    while True:
        answer = await api.get(path, params=query | ({"cursor": cursor} if cursor else {}))
        assert answer.status_code == 200, answer.text
        page = answer.json()
        rows += page["items"]
        cursor = page["next"]
        if cursor is None:
            return rows


async def md5s_of(api: httpx.AsyncClient, path: str = "/api/articles", **query: Any) -> list[str]:
    return [row["md5"] for row in await pages(api, path, **query)]


def prepare_states(db: Connection) -> list[str]:
    """Add nine articles: 0 came back, 1 has a lease that ran out, 2 is claimed, 3 waits for its retry; new ones."""
    md5s = fill(db, 9)
    claim(db, 4)
    fail(db, [md5s[3]], "no")
    db.execute(
        "UPDATE pending_articles SET claimed_until = now() - interval '2 h', lease_id = NULL WHERE md5 = %s", md5s[:1]
    )
    db.execute("UPDATE pending_articles SET claimed_until = now() - interval '1 h' WHERE md5 = %s", md5s[1:2])
    db.execute("UPDATE pending_articles SET claimed_until = now() + interval '1 h' WHERE md5 = %s", md5s[2:3])
    return md5s


@pytest.mark.parametrize("limit", [1, 2, 3, 50])
async def test_pages_have_every_article_once_in_the_order_of_claims(
    api: httpx.AsyncClient, db: Connection, limit: int
) -> None:
    md5s = prepare_states(db)
    assert await md5s_of(api, limit=limit) == [*md5s[:2], *md5s[4:], md5s[3], md5s[2]]
    assert await md5s_of(api, limit=limit, state="claimable") == [*md5s[:2], *md5s[4:]]
    assert await md5s_of(api, limit=limit, state="claimed") == [md5s[2]]
    assert await md5s_of(api, limit=limit, state="waiting") == [md5s[3]]
    rows = await pages(api, "/api/articles")
    assert [row["state"] for row in rows] == ["back", "lease expired", *["new"] * 5, "waiting for retry", "claimed"]
    assert keys(claim(db, 20)) == sorted([*md5s[:2], *md5s[4:]], key=md5s.index)


async def test_articles_that_come_and_go_shift_no_page(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 6)
    first = (await api.get("/api/articles", params={"limit": 3})).json()
    claim(db, 2)
    db.execute("DELETE FROM pending_articles WHERE md5 = %s", [md5s[3]])
    rest = (await api.get("/api/articles", params={"limit": 3, "cursor": first["next"]})).json()
    assert [row["md5"] for row in rest["items"]][:2] == md5s[4:]


async def test_filters(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 4)
    db.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://y/', 'y')")
    db.execute(
        "UPDATE pending_articles SET feed_id = 2, title = '100 %% Wool', language = 'de-AT' WHERE md5 = %s", md5s[1:2]
    )
    db.execute("UPDATE pending_articles SET created_at = '2026-01-01T00:00:00Z' WHERE md5 = %s", md5s[2:3])
    for query in ({"feed": "2"}, {"feed": "http://y/"}, {"q": "% wool"}, {"language": "de"}, {"language": "DE-at"}):
        assert await md5s_of(api, **query) == [md5s[1]]
    assert await md5s_of(api, tag="news", until="2026-01-01T00:00:01Z") == [md5s[2]]
    assert md5s[2] not in await md5s_of(api, since="2026-01-01T01:00:01+01:00")
    assert await md5s_of(api, tag="none") == await md5s_of(api, language="d") == await md5s_of(api, feed="77") == []
    assert await md5s_of(api, md5=md5s[0][:6].upper()) == [md5s[0]]
    db.execute("SELECT bury_articles(%s, 'why')", [md5s])
    for query in ({"feed": "2"}, {"feed": "http://y/"}, {"q": "% WOOL"}, {"language": "de"}, {"md5": md5s[1]}):
        assert await md5s_of(api, "/api/articles/dead", **query) == [md5s[1]]
    assert sorted(await md5s_of(api, "/api/articles/dead", limit=3)) == sorted(md5s)
    assert await md5s_of(api, "/api/articles/dead", until="2026-01-01T00:00:00Z") == []


async def test_filters_by_label(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 4)
    labels = [("en", "politics", None, None), ("de", "sport", md5s[0], "text"), ("und", None, md5s[0], None)]
    for md5, values in zip(md5s, labels, strict=False):
        db.execute(
            "UPDATE pending_articles SET (detected_language, topic, duplicate_of, duplicate_kind) = (%s, %s, %s, %s)"
            " WHERE md5 = %s",
            [*values, md5],
        )
    queries: list[tuple[dict[str, str], list[int]]] = [
        ({"detected_language": "EN"}, [0]),
        ({"detected_language": "und"}, [2]),
        ({"topic": "sport"}, [1]),
        ({"topic": "none"}, [2, 3]),
        ({"duplicate_kind": "text"}, [1]),
        ({"duplicate_kind": "address"}, [2]),  # a writer that knew no other kind
        ({"duplicate_kind": "none"}, [0, 3]),
        ({"duplicate_kind": "none", "topic": "politics", "detected_language": "en"}, [0]),
        ({"detected_language": "e"}, []),
    ]
    for query, expected in queries:
        assert await md5s_of(api, **query) == [md5s[n] for n in expected], query
    db.execute("SELECT bury_articles(%s, 'why')", [md5s])
    for query, expected in queries:
        assert set(await md5s_of(api, "/api/articles/dead", **query)) == {md5s[n] for n in expected}, query


@pytest.mark.parametrize(
    ("path", "query", "status"),
    [
        ("", {"feed": "http://unknown/"}, 404),
        ("/dead", {"feed": "http://unknown/"}, 404),
        ("", {"feed": "9" * 400}, 200),
        ("", {"feed": "²"}, 404),
        ("", {"feed": "a\0b"}, 422),
        ("", {"q": "\0"}, 422),
        ("", {"tag": "///"}, 422),
        ("", {"tag": "a\0b"}, 200),
        ("", {"md5": "xyz%"}, 422),
        ("", {"topic": "\0"}, 422),
        ("", {"duplicate_kind": "each"}, 422),
        ("", {"since": "2026-01-01T00:00:00"}, 422),
        ("", {"since": "0001-01-01T00:00:00+23:00"}, 422),
        ("", {"until": "9999-12-31T23:59:59-23:00"}, 422),
        ("", {"since": "2026-01-01T00:00:00+23:59"}, 200),
        ("", {"until": "1e300"}, 422),
        ("", {"state": "dead"}, 422),
        ("", {"limit": "9" * 40}, 422),
        ("", {"cursor": "WzFd"}, 422),
        ("", {"cursor": "W10"}, 422),
        # ["2026-01-01T00:00:00Z", 0, "x", "x", "x"]
        ("", {"cursor": "WyIyMDI2LTAxLTAxVDAwOjAwOjAwWiIsIDAsICJ4IiwgIngiLCAieCJd"}, 422),
        ("/dead", {"cursor": "WyJhIiwiYiJd"}, 422),
        ("/x%00", {}, 422),
        ("/" + "a" * 300, {}, 422),
        ("/none", {}, 404),
    ],
)
async def test_nonsense_is_answered_with_what_is_wrong(
    api: httpx.AsyncClient, db: Connection, path: str, query: dict[str, str], status: int
) -> None:
    answer = await api.get(f"/api/articles{path}", params=query)
    assert answer.status_code == status, answer.text
    assert status == 200 or answer.headers["content-type"] == "application/problem+json"


async def test_a_cursor_of_a_part_that_the_state_has_not_is_refused(api: httpx.AsyncClient, db: Connection) -> None:
    fill(db, 2)
    claim(db, 2)
    cursor = (await api.get("/api/articles", params={"limit": 1})).json()["next"]
    assert (await api.get("/api/articles", params={"cursor": cursor, "state": "claimable"})).status_code == 422


async def test_an_article_is_shown_with_all_its_columns(api: httpx.AsyncClient, db: Connection) -> None:
    md5s = fill(db, 1)
    shown = (await api.get(f"/api/articles/{md5s[0]}")).json()
    columns = db.execute("SELECT * FROM pending_articles").fetchall()[0].keys()
    assert shown.keys() == columns | {"state"}
    assert (await api.get(f"/api/articles/{md5s[0][:5].upper()}")).json() == shown
    db.execute("SELECT bury_articles(%s, 'why')", [md5s])
    shown = (await api.get(f"/api/articles/{md5s[0]}")).json()
    assert shown.keys() == db.execute("SELECT * FROM dead_articles").fetchall()[0].keys() | {"state"}
    assert (shown["state"], shown["error"]) == ("dead", "why")
    db.execute("UPDATE dead_articles SET md5 = 'abcdef' || right(md5, 26)")
    fill(db, 1)
    db.execute("UPDATE pending_articles SET md5 = 'abcdef' || right(md5, 26) || 'x'")
    assert (await api.get("/api/articles/abcdef")).status_code == 409


async def test_articles_are_counted(api: httpx.AsyncClient, db: Connection) -> None:
    nothing = {"pending": 0, "claimable": 0, "claimed": 0, "waiting_for_retry": 0, "lease_expired": 0, "dead": 0}
    assert (await api.get("/api/articles/counts")).json() == {**nothing, "oldest_seconds": None}
    prepare_states(db)
    found = (await api.get("/api/articles/counts")).json()
    assert found.pop("oldest_seconds") == pytest.approx(86_400, abs=60)
    assert found == {**nothing, "pending": 9, "claimable": 7, "claimed": 1, "waiting_for_retry": 1, "lease_expired": 1}


async def test_the_ledger_has_what_a_feed_ever_brought(
    api: httpx.AsyncClient, resources: Resources, db: Connection
) -> None:
    entries = tuple(make_entry(n, entry_id=f"id {n}" if n % 2 else make_entry(n).url) for n in range(9))
    await write(resources.database, make_result(feed_id=1, entries=entries))
    db.execute("DELETE FROM pending_articles")
    kept = db.execute("SELECT count(*) FILTER (WHERE entry_key IS NULL) AS without_id, count(*) AS n FROM feed_items")
    assert kept.fetchall() == [{"without_id": 5, "n": 9}]
    db.execute(  # as the writer does it where the fetcher says what the feed lists
        "INSERT INTO feed_listings SELECT 1, decode(repeat('00', 80), 'hex'),"
        " decode(string_agg(md5, ''), 'hex'), decode(repeat('00', 72), 'hex') FROM feed_items"
    )
    found = await md5s_of(api, "/api/ledger", feed="http://x/", limit=2)
    assert len(found) == len(set(found))
    assert sorted(found) == sorted(entry.md5 for entry in entries)
    assert await md5s_of(api, "/api/ledger", md5=[found[3], "0" * 32]) == [found[3]]
    assert await md5s_of(api, "/api/ledger", feed="2") == []
    for nonsense in ({}, {"feed": "1", "md5": "0" * 32}, {"md5": "x"}, {"feed": "1", "cursor": "WyJhIiwiYiJd"}):
        assert (await api.get("/api/ledger", params=nonsense)).status_code == 422


async def test_articles_are_for_readers_and_consumers_and_the_ledger_for_readers(
    api: httpx.AsyncClient, caller: Caller, db: Connection
) -> None:
    paths = ("/api/articles", "/api/articles/dead", "/api/articles/counts", "/api/ledger?feed=1")
    for scope, statuses in {
        Scope.READ: [200, 200, 200, 200],
        Scope.WRITE: [200, 200, 200, 200],
        Scope.CONSUME: [200, 200, 200, 403],
    }.items():
        caller.scopes = {scope}
        assert [(await api.get(path)).status_code for path in paths] == statuses
    caller.scopes = set()
    assert [(await api.get(path)).status_code for path in paths] == [403] * 4


async def test_no_list_sorts_or_reads_all_articles(resources: Resources, db: Connection) -> None:
    """Each part comes from its index in order, also behind a place in the middle."""
    fill(db, 30_000)
    db.execute(
        "UPDATE pending_articles SET claimed_until = now() + interval '1 h' WHERE get_byte(md5::bytea, 1) % 9 = 0"
    )
    db.execute("ANALYZE pending_articles")
    async with resources.database.transaction() as connection:
        now = await admin.read_clock(connection)
        explained = _Explained(connection)
        rows = await admin.list_pending(connection, admin.Filter(), admin.State.PENDING, 1000, now)
        last = rows[-1]
        place = admin.Place(now, last["part"], last["claimed_until"], last["created_at"], last["md5"])
        for state in admin.State:
            await admin.list_pending(explained.proxy, admin.Filter(), state, 50, now)
        await admin.list_pending(explained.proxy, admin.Filter(), admin.State.PENDING, 50, now, place)
        await admin.list_pending(explained.proxy, admin.Filter(md5="abcd"), admin.State.PENDING, 3, now)
    assert len(explained.plans) == 6
    assert not [plan for plan in explained.plans if "Seq Scan" in plan]
    in_order = [*explained.plans[:2], explained.plans[4]]  # few are claimed, so it may sort those
    assert not [plan for plan in in_order if "Sort" in plan]


class _Explained:
    """A connection whose queries are explained instead."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self.plans: list[str] = []

    @property
    def proxy(self) -> Any:
        return self

    async def execute(self, query: str, values: Any, **options: Any) -> Any:
        cursor = await self._connection.execute(f"EXPLAIN {query}".encode(), values, **options)
        self.plans.append("\n".join(row["QUERY PLAN"] for row in await cursor.fetchall()))
        return await self._connection.execute("SELECT 1 WHERE false")
