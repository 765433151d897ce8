"""The Python clients, the blocking and the asyncio one, against a real PostgreSQL; and everything at once."""

from __future__ import annotations

import asyncio
import inspect
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from feedmill_client import AWAY, Article, AsyncPendingArticles, HttpPendingArticles, PendingArticles
from shared.database.postgres import Database
from tests.factories import make_entry, make_result
from tests.integration.consumers.test_pending_articles import (
    Connection,
    connect,
    dead,
    fill,
    pending,
)
from tests.integration.writer.writing import write

ROOT = Path(__file__).parents[3]


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        yield connection


def keys(articles: Sequence[Article]) -> list[str]:
    return [article.md5 for article in articles]


def cut_connections(db: Connection) -> None:
    db.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'feedmill consumer'"
    )


def test_an_article_is_typed_and_every_call_is_there(db: Connection, database_url: str) -> None:
    md5s = fill(db, 5)
    with PendingArticles(database_url) as consumer:
        articles = consumer.claim(4)
        assert keys(articles) == md5s[:4]
        assert (articles[0].title, articles[0].categories, articles[0].enclosures) == ("Article 1", [], [])
        assert consumer.renew(articles) == articles
        assert consumer.ack(articles[:1]) == 1
        assert consumer.fail(articles[1:2], ValueError("a NUL \0"), timedelta(days=1)) == 1
        assert consumer.release(articles[2:3]) == 1
        assert consumer.renew(articles) == articles[3:]
    row = db.execute("SELECT last_error FROM pending_articles WHERE retry_count = 1").fetchone()
    assert row == {"last_error": "ValueError: a NUL "}


def test_run_acknowledges_fails_and_stops_after_the_current_article(db: Connection, database_url: str) -> None:
    md5s = fill(db, 10)
    seen = []

    def handle(article: Article) -> None:
        seen.append(article.md5)
        if article.md5 == md5s[2]:
            raise ValueError("odd article")
        if len(seen) == 6:
            consumer.stop()

    with PendingArticles(database_url) as consumer:
        consumer.run(handle, batch=8)
    assert seen == md5s[:6]
    assert pending(db) == [md5s[2], *md5s[6:]]
    left = db.execute("SELECT lease_id, retry_count, last_error FROM pending_articles ORDER BY created_at").fetchall()
    assert [tuple(row.values()) for row in left] == [(None, 1, "ValueError: odd article")] + [(None, 0, None)] * 4


def test_an_interruption_releases_the_article_under_way_and_acknowledges_finished_ones(
    db: Connection, database_url: str
) -> None:
    md5s = fill(db, 3)

    def handle(article: Article) -> None:
        if article.md5 == md5s[1]:
            raise KeyboardInterrupt

    with PendingArticles(database_url) as consumer, pytest.raises(KeyboardInterrupt):
        consumer.run(handle)
    assert pending(db) == md5s[1:]
    left = db.execute(
        "SELECT count(*) AS n FROM pending_articles WHERE lease_id IS NULL AND retry_count = 0"
    ).fetchone()
    assert left == {"n": 2}


def test_leases_are_renewed_between_articles_and_lost_ones_are_left_alone(db: Connection, database_url: str) -> None:
    md5s = fill(db, 6)
    seen = []

    def handle(article: Article) -> None:
        seen.append(article.md5)
        if len(seen) == 1:  # another consumer takes the last one meanwhile
            db.execute("UPDATE pending_articles SET lease_id = gen_random_uuid() WHERE md5 = %s", [md5s[5]])
        time.sleep(0.7)
        if len(seen) == 5:
            consumer.stop()

    with PendingArticles(database_url) as consumer:
        consumer.run(handle, lease=timedelta(seconds=2.5))
    assert seen == md5s[:5]
    assert pending(db) == md5s[5:]
    assert db.execute("SELECT expiries FROM pending_articles").fetchall() == [{"expiries": 0}]


def test_a_waiting_consumer_is_woken_by_the_notification_and_not_by_the_clock(
    db: Connection, database_url: str
) -> None:
    with PendingArticles(database_url, poll_seconds=60) as consumer, ThreadPoolExecutor(1) as pool:
        batch = pool.submit(lambda: next(consumer.batches()))
        time.sleep(0.5)
        md5s = fill(db, 3)
        assert keys(batch.result(timeout=30)) == md5s


def test_without_notifications_it_looks_again(db: Connection, database_url: str) -> None:
    md5s = fill(db, 1)
    db.execute("UPDATE pending_articles SET claimed_until = now() + interval '0.5 s'")
    with PendingArticles(database_url, poll_seconds=0.2) as consumer:
        assert keys(next(consumer.batches())) == md5s


def test_a_connection_that_is_lost_at_any_time_is_made_again(db: Connection, database_url: str) -> None:
    md5s = fill(db, 40)
    seen = []

    def handle(article: Article) -> None:
        seen.append(article.md5)
        if len(seen) % 10 == 0:
            cut_connections(db)
        if len(seen) == 40:
            threading.Timer(0.5, consumer.stop).start()

    with PendingArticles(database_url) as consumer:
        consumer.run(handle, batch=15)
        with pytest.raises(AWAY):
            PendingArticles("postgresql://127.0.0.1:1/x").claim()
    assert seen == md5s
    assert pending(db) == []


def test_a_stop_while_the_database_is_away_ends_it(database_url: str) -> None:
    consumer = PendingArticles("postgresql://127.0.0.1:1/x")
    threading.Timer(0.5, consumer.stop).start()
    assert list(consumer.batches()) == []


async def test_the_asyncio_client_does_the_same(db: Connection, database_url: str) -> None:
    md5s = fill(db, 10)
    seen = []

    async def handle(article: Article) -> None:
        seen.append(article.md5)
        await asyncio.sleep(0)
        if article.md5 == md5s[2]:
            raise ValueError("odd article")
        if len(seen) == 4:
            cut_connections(db)
        if len(seen) == 10:
            await asyncio.to_thread(fill, db, 2, 11)
        if len(seen) == 11:
            consumer.stop()

    async with AsyncPendingArticles(database_url, poll_seconds=60) as consumer:
        await asyncio.wait_for(consumer.run(handle, batch=20), 30)
        again = await consumer.claim()
        assert await consumer.renew(again) == again
        assert await consumer.release(again) == 1
    assert seen[:10] == md5s
    left = db.execute("SELECT retry_count AS n FROM pending_articles ORDER BY created_at").fetchall()
    assert [row["n"] for row in left] == [1, 0]


async def test_a_cancelled_task_releases_its_articles(db: Connection, database_url: str) -> None:
    fill(db, 5)
    begun = asyncio.Event()

    async def handle(article: Article) -> None:
        begun.set()
        await asyncio.sleep(60)

    async with AsyncPendingArticles(database_url) as consumer:
        task = asyncio.create_task(consumer.run(handle))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert db.execute("SELECT count(*) AS n FROM pending_articles WHERE lease_id IS NULL").fetchone() == {"n": 5}


async def test_the_asyncio_client_waits_and_can_be_stopped_while_it_does(database_url: str) -> None:
    async with AsyncPendingArticles(database_url, poll_seconds=60) as consumer:
        asyncio.get_running_loop().call_later(0.3, consumer.stop)
        assert [batch async for batch in consumer.batches()] == []


def test_all_clients_have_the_same_methods_with_the_same_parameters() -> None:
    def methods(cls: type) -> dict[str, list[str]]:
        public = inspect.getmembers(cls, inspect.isfunction)
        return {name: list(inspect.signature(f).parameters) for name, f in public if not name.startswith("_")}

    assert methods(PendingArticles) == methods(AsyncPendingArticles) == methods(HttpPendingArticles)


def test_the_example_in_the_docs_drains_the_table_and_ends_on_sigterm(
    db: Connection, database_url: str, tmp_path: Path
) -> None:
    page = (ROOT / "docs" / "how-to" / "consume.md").read_text(encoding="utf-8")
    code, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(code.splitlines()) <= 20
    (tmp_path / "consumer.py").write_text(code)
    environment = {**os.environ, "FEEDMILL_DATABASE_URL": database_url, "PYTHONPATH": str(ROOT)}
    md5s = fill(db, 70)
    with subprocess.Popen(
        [sys.executable, "-u", "consumer.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        deadline = time.monotonic() + 30
        while pending(db) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert [line.split()[0] for line in output.splitlines()] == md5s
    assert pending(db) == []


def test_the_example_of_wanted_articles_takes_first_tellings_in_english_about_politics(
    db: Connection, database_url: str
) -> None:
    page = (ROOT / "docs" / "how-to" / "consume.md").read_text(encoding="utf-8")
    *_, code = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"Article": Article}
    exec(code, names)
    md5s = fill(db, 5)
    topic = "politics and government"
    db.execute("UPDATE pending_articles SET detected_language = 'en', topic = %s, topic_confidence = 0.9", [topic])
    changes = ("detected_language = 'de'", "topic = NULL", "topic_confidence = 0.5", "duplicate_of = 'x'")
    for md5, change in zip(md5s, changes, strict=False):
        db.execute(f"UPDATE pending_articles SET {change} WHERE md5 = %s".encode(), [md5])
    with PendingArticles(database_url) as pending_articles:
        assert [article.md5 for article in pending_articles.claim() if names["wanted"](article)] == md5s[4:]


def test_the_client_imports_nothing_but_psycopg() -> None:
    code = "import feedmill_client, sys; print([m for m in ('services', 'shared', 'pydantic') if m in sys.modules])"
    output = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


class Crash(Exception):
    """The consumer crashes in the middle of its work."""


class Work:
    """What ten consumers have done: the newest revision of each article that each of them has finished."""

    def __init__(self) -> None:
        self.index: dict[str, str] = {}
        self.revision: dict[str, int] = {}
        self.times: Counter[str] = Counter()
        self._lock = threading.Lock()

    def put(self, article: Article) -> None:
        with self._lock:
            self.times[article.md5] += 1
            if article.revision >= self.revision.get(article.md5, 0):
                self.index[article.md5] = article.content_hash
                self.revision[article.md5] = article.revision


def consume(database_url: str, work: Work, shuffle: random.Random, is_over: threading.Event) -> None:
    """Drain like a consumer that crashes, disconnects, fails and releases at random."""
    while not is_over.is_set():
        try:
            with PendingArticles(database_url) as consumer:
                while not is_over.is_set():
                    work_off(consumer, work, shuffle)
        except (Crash, *AWAY):
            continue


def work_off(consumer: PendingArticles, work: Work, shuffle: random.Random) -> None:
    articles = consumer.claim(shuffle.randint(1, 30), timedelta(milliseconds=shuffle.choice([150, 300, 3000])))
    if not articles:
        time.sleep(0.02)
        return
    if shuffle.random() < 0.04:
        raise Crash
    for article in articles:
        work.put(article)
    if shuffle.random() < 0.05:
        time.sleep(0.3)  # too slow for most leases
    if shuffle.random() < 0.04:
        raise Crash
    if shuffle.random() < 0.1:
        consumer.fail(articles[:2], "by chance", timedelta(milliseconds=50))
        articles = articles[2:]
    if shuffle.random() < 0.1:
        consumer.release(articles[-2:])
        articles = articles[:-2]
    consumer.ack(articles)


async def write_rounds(database_url: str, number: int, rounds: int) -> None:
    """Write articles, new ones and new texts of those that were written before, as one of two writers."""
    shuffle = random.Random(number)
    async with Database(database_url, size=1).open() as database:
        for round_ in range(rounds):
            picked = [round_ * 20 + n for n in range(20)] + shuffle.sample(range(round_ * 20 + 1), min(10, round_))
            entries = [make_entry(n, content_hash=f"{round_ * 2 + number:064x}") for n in sorted(set(picked))]
            await write(database, make_result(feed_id=1, entries=tuple(entries)), later=timedelta(seconds=round_))


async def test_two_writers_and_ten_consumers_that_crash_lose_nothing(db: Connection, database_url: str) -> None:
    work, is_over = Work(), threading.Event()
    with ThreadPoolExecutor(11) as pool:
        drains = [pool.submit(consume, database_url, work, random.Random(n), is_over) for n in range(10)]
        await asyncio.gather(write_rounds(database_url, 0, 60), write_rounds(database_url, 1, 60))
        deadline = time.monotonic() + 90
        while pending(db) and time.monotonic() < deadline:
            if random.random() < 0.3:
                cut_connections(db)
            db.execute("SELECT revive_articles(array_agg(md5)) FROM dead_articles HAVING count(*) > 0")
            await asyncio.sleep(0.1)
        is_over.set()
        for drain in drains:
            drain.result(timeout=30)
    assert (pending(db), dead(db)) == ([], [])
    written = db.execute("SELECT md5, content_hash FROM feed_items").fetchall()
    assert len(written) == 1200
    assert work.index.keys() == {row["md5"] for row in written}
    assert sum(work.times.values()) > 1200


def test_the_last_text_is_always_the_one_that_was_worked_on(db: Connection, database_url: str) -> None:
    """The writer changes texts that are pending; whatever consumers do meanwhile, the last text is worked on last."""
    md5s = fill(db, 300)
    work, is_over = Work(), threading.Event()
    last: dict[str, str] = {}

    def change() -> None:
        shuffle = random.Random(5)
        with psycopg.connect(database_url, autocommit=True) as writer:
            for round_ in range(150):
                picked = sorted(shuffle.sample(md5s, 10))
                with writer.transaction():
                    for md5 in picked:
                        found = writer.execute(
                            "UPDATE pending_articles SET content_hash = %s, revision = revision + 1 WHERE md5 = %s"
                            " RETURNING content_hash",
                            [f"text {round_}", md5],
                        ).fetchone()
                        if found:
                            last[md5] = found[0]
                time.sleep(0.005)

    with ThreadPoolExecutor(11) as pool:
        changes = pool.submit(change)
        drains = [pool.submit(consume, database_url, work, random.Random(n), is_over) for n in range(4)]
        changes.result(timeout=60)
        deadline = time.monotonic() + 60
        while pending(db) and time.monotonic() < deadline:
            db.execute("SELECT revive_articles(array_agg(md5)) FROM dead_articles HAVING count(*) > 0")
            time.sleep(0.1)
        is_over.set()
        for drain in drains:
            drain.result(timeout=30)
    assert last
    assert {md5: work.index[md5] for md5 in last} == last


async def test_the_writers_new_text_leaves_the_lease_and_counts_anew(db: Connection, database_url: str) -> None:
    await write_rounds(database_url, 0, 1)
    with PendingArticles(database_url) as consumer:
        (old, *_) = consumer.claim()
        entry = make_entry(0, body="corrected", content_hash="f" * 64)
        async with Database(database_url, size=1).open() as database:
            await write(database, make_result(feed_id=1, entries=(entry,)))
        assert consumer.claim() == []
        row = db.execute("SELECT * FROM pending_articles WHERE md5 = %s", [entry.md5]).fetchone()
        assert row is not None
        assert (row["body"], row["revision"], row["lease_id"]) == ("corrected", 1, old.lease_id)
        claimed = db.execute("SELECT * FROM pending_articles WHERE content_hash = claimed_hash").rowcount
        assert claimed == 19
