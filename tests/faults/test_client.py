"""A consumer whose database is killed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from feedmill_client import Article, PendingArticles
from local.servers import Servers
from tests.integration.consumers.test_pending_articles import (
    Connection,
    change_text,
    connect,
    fill,
    let_time_pass,
    pending,
)


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        yield connection


def test_a_server_that_is_killed_and_comes_back_loses_nothing(
    db: Connection, database_url: str, servers: Servers
) -> None:
    md5s = fill(db, 200)
    db.close()
    seen: list[str] = []

    def handle(article: Article) -> None:
        seen.append(article.md5)
        if len(seen) in {50, 120}:
            servers.postgres.kill()
            threading.Timer(0.5, servers.postgres.start).start()
        if set(seen) == set(md5s):
            threading.Timer(2.0, consumer.stop).start()

    with PendingArticles(database_url, poll_seconds=0.2) as consumer:
        consumer.run(handle, batch=30, lease=timedelta(seconds=5))
    with connect(database_url) as again:
        assert pending(again) == []
        let_time_pass(again)
        change_text(again)
    assert set(seen) == set(md5s)
