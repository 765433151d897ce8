"""Freshness over HTTP and in commands; and of an article that is published on a real server while time passes."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import time
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from email.utils import format_datetime

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from services.admin.health.freshness import read_freshness
from services.admin.health.freshness_words import in_words
from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from services.fetcher.attempt import FeedFetcher, FetchLimits
from services.fetcher.clock import Clock
from services.fetcher.http.client import ClientLimits, FeedClient
from services.fetcher.request import prepare_request
from services.writer.freshness.buckets import bucket_of, edge_of
from services.writer.handler import WriteArticles
from services.writer.schedule.feed_state import Rules
from services.writer.store import Policy
from shared.database.postgres import Database
from shared.errors import ConfigurationError
from shared.wire.results import FeedFetched
from tests.factories import NOW, make_job
from tests.integration.fetcher.raw_server import answer, saying, serving
from tests.integration.writer.writing import claim
from tests.unit.parse.feeds import rss

COUNTS = {"sure": (40, 19), "unsure": (90, 1), "duplicate": (0, 4)}
"""By kind: bucket and articles."""


@pytest.fixture
def feed_id(database_url: str) -> int:
    """A feed with articles of this hour."""
    with connect(database_url) as connection:
        feed_id = add_feed(connection, NewFeed("http://news.example/feed"))[0]
    with psycopg.connect(database_url) as connection:
        for kind, (bucket, articles) in COUNTS.items():
            connection.execute(
                "INSERT INTO feed_freshness VALUES (date_trunc('hour', now(), 'UTC'), %s, %s, %s, %s)",
                [feed_id, kind, bucket, articles],
            )
    return feed_id


async def test_a_feed_its_host_and_all_feeds_have_the_same_figures(api: httpx.AsyncClient, feed_id: int) -> None:
    overall = (await api.get("/api/freshness")).json()
    assert (await api.get("/api/freshness", params={"feed": feed_id})).json() == overall
    assert (await api.get("/api/freshness", params={"host": "news.example"})).json() == overall
    assert (await api.get(f"/api/feeds/{feed_id}")).json()["freshness"] == overall
    assert (await api.get("/api/hosts/news.example")).json()["freshness"] == overall
    day = overall["day"]
    assert (day["sure"], day["unsure"], day["ahead"], day["share_sure"], day["left_out"]["duplicate"]) == (
        19, 1, 0, 0.95, 4,
    )  # fmt: skip
    assert day["seconds"] == {name: edge_of(40) for name in ("p50", "p95", "p99")}
    assert day["at_most"] == {"p50": edge_of(40), "p95": edge_of(40), "p99": edge_of(90)}
    begin = {span: datetime.fromisoformat(overall[span]["since"]) for span in ("hour", "day", "week")}
    assert begin["hour"] - begin["week"] == timedelta(hours=167)
    assert begin["hour"].minute == 0


async def test_of_nothing_there_is_no_freshness(api: httpx.AsyncClient) -> None:
    week = (await api.get("/api/freshness")).json()["week"]
    assert (week["sure"], week["share_sure"], week["seconds"], week["at_most"]) == (0, None, None, None)


@pytest.mark.parametrize(
    ("query", "status", "detail"),
    [
        ({"feed": 99}, 404, "there is no feed 99"),
        ({"host": "nobody.example"}, 404, "no feed is at the host nobody.example"),
        ({"host": "news.example", "feed": 1}, 422, "not both"),
        ({"feed": 0}, 422, "query.feed"),
        ({"host": "a\0b"}, 422, "query.host"),
    ],
)
async def test_what_is_not_there_or_makes_no_sense_is_said(
    api: httpx.AsyncClient, query: dict[str, str], status: int, detail: str
) -> None:
    found = await api.get("/api/freshness", params=query)
    assert found.status_code == status
    assert detail in found.json()["detail"]


def test_commands_show_it(database_url: str, feed_id: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    words = "half within 46 s, 95 % within 46 s, 99 % within 46 s (20 articles, 95 % with a sure date; of all: half"
    assert words in run("feeds", "show", str(feed_id))
    assert words in run("hosts", "news.example")
    table = run("freshness")
    assert run("freshness", "--feed", "http://news.example/feed") == run("freshness", "--host", "news.example") == table
    assert [line.split() for line in table.splitlines()[1:4]] == [
        [span, "20", "95%", *["46", "s"] * 3, *["46", "s"] * 2, "89", "min", "4"] for span in ("hour", "day", "week")
    ]
    assert json.loads(run("freshness", "--json"))["week"]["sure"] == 19
    with pytest.raises(ConfigurationError, match=r"no feed is at the host nobody\.example"):
        run("freshness", "--host", "nobody.example")


async def test_no_figure_reads_the_counts_of_all_feeds(api: httpx.AsyncClient, database_url: str, feed_id: int) -> None:
    """They are looked up by the hour: a week of 50,000 feeds has millions."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO feed_freshness SELECT date_trunc('hour', now(), 'UTC') - make_interval(hours => h), %s + n,"
            " 'sure', 9, 1 FROM generate_series(1, 160) AS h, generate_series(0, 99) AS n",
            [feed_id],
        )
        connection.execute(
            "INSERT INTO host_freshness SELECT date_trunc('hour', now(), 'UTC') - make_interval(hours => h), '',"
            " 'summed', 0, 0 FROM generate_series(1, 160) AS h"
        )
        connection.execute("ANALYZE feed_freshness, host_freshness")
        connection.commit()
        before = _scans(connection)
        for query in ({}, {"feed": feed_id}, {"host": "news.example"}):
            assert (await api.get("/api/freshness", params=query)).status_code == 200
        async with asyncio.timeout(30):
            while (after := _scans(connection))[1] == before[1]:
                await asyncio.sleep(0.1)  # statistics come a moment later
    assert after[0] == before[0]


def _scans(connection: psycopg.Connection) -> tuple[int, int]:
    """Return how often the table was read as a whole, and how often by its index."""
    connection.commit()
    row = connection.execute(
        "SELECT seq_scan::int, idx_scan::int FROM pg_stat_user_tables WHERE relname = 'feed_freshness'"
    ).fetchone()
    assert row is not None
    return row[0], row[1]


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url, size=2).open() as opened:
        yield opened


class Site:
    """A feed on a loopback server, polled and written while the test sets the time."""

    def __init__(self, database: Database) -> None:
        self.now = NOW
        self._database = database
        self._clock = Clock(now=lambda: self.now, monotonic=time.monotonic)
        self._items = ""

    def publish(self, number: int, dated: datetime | None) -> None:
        date = f"<pubDate>{format_datetime(dated)}</pubDate>" if dated else ""
        self._items += f"<item><title>News {number}</title><link>http://n.example/{number}</link>{date}</item>"

    async def poll(self, feed_id: int) -> None:
        """Poll the feed at `now`; its row is written five seconds later."""
        client = FeedClient(ClientLimits(), user_agent="t", allowed=(ipaddress.ip_network("127.0.0.0/8"),))
        claim_id = await claim(self._database, feed_id)
        with serving(saying(answer(body=rss(self._items).encode()))) as server:
            job = make_job(feed_id=feed_id, url=server.url(), claim_id=claim_id, queued_at=self.now)
            reader = FeedFetcher(client, self._clock, FetchLimits())
            found, _ = reader.make_request(prepare_request(job, frozenset()), lambda: None)
        client.close()
        assert isinstance(found, FeedFetched)
        self.now += timedelta(seconds=5)
        await WriteArticles(self._database, Rules(), Policy(), frozenset(), lambda: self.now)([found])


async def test_articles_that_a_site_publishes_have_their_true_freshness(database: Database, database_url: str) -> None:
    with connect(database_url) as connection:
        feed_id = add_feed(connection, NewFeed("http://n.example/feed"))[0]
    site = Site(database)
    site.publish(1, NOW - timedelta(minutes=3))
    await site.poll(feed_id)  # the backlog
    site.publish(2, NOW + timedelta(minutes=20))
    site.publish(3, None)
    site.now = NOW + timedelta(minutes=30)
    await site.poll(feed_id)
    async with database.transaction() as connection_:
        found = (await read_freshness(connection_, feed=feed_id, now=site.now))["hour"]
    assert (found.sure, found.unsure, found.left_out["first_reading"]) == (1, 1, 1)
    assert found.seconds
    assert found.at_most
    assert found.seconds.p50 == edge_of(bucket_of(10 * 60 + 5))
    assert found.at_most.p99 == edge_of(bucket_of(30 * 60 + 5))
    assert in_words(found).startswith("half within 11 min, ")
