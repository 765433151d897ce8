"""Feed readers as people write them, to stand beside the pipeline: threads that fetch, parse, INSERT … ON CONFLICT.

They make conditional requests. Validators, articles and the last status are in PostgreSQL, a transaction per feed. They
know no politeness, no queue, no retries, no changed articles, and no text but the HTML that came.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import fastfeedparser
import feedparser
import httpx
import urllib3
from psycopg_pool import ConnectionPool

THREADS = 16

TABLES = """
CREATE TABLE script_feeds (
    url text PRIMARY KEY, etag text, last_modified text, polled_at timestamptz, status integer
);
CREATE TABLE script_articles (
    url text PRIMARY KEY, feed text NOT NULL, title text, body text, author text, published_at timestamptz
);
"""
INSERT = """
INSERT INTO script_articles (url, feed, title, body, author, published_at) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (url) DO NOTHING
"""
UPDATE = "UPDATE script_feeds SET polled_at = now(), status = %s, etag = %s, last_modified = %s WHERE url = %s"


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    body: bytes
    headers: Any
    """By name, in any case."""


class Article(NamedTuple):
    """One entry of a feed."""

    url: str
    title: str
    body: str
    author: str
    published: str | None


class Script(ABC):
    """A reader with a database of its own. Blocking; close it."""

    def __init__(self, database_url: str) -> None:
        self._database = ConnectionPool(database_url, min_size=THREADS, max_size=THREADS, open=True)
        self._threads = ThreadPoolExecutor(THREADS)
        with self._database.connection() as connection:
            connection.execute(TABLES)

    def close(self) -> None:
        """Close the connections and end the threads."""
        self._threads.shutdown()
        self._database.close()

    def register(self, urls: Sequence[str]) -> None:
        """Replace the feeds by these."""
        with self._database.connection() as connection:
            connection.execute("DELETE FROM script_feeds")
            connection.cursor().executemany("INSERT INTO script_feeds (url) VALUES (%s)", [(url,) for url in urls])

    def poll(self) -> None:
        """Poll all feeds once."""
        with self._database.connection() as connection:
            feeds = connection.execute("SELECT url, etag, last_modified FROM script_feeds").fetchall()
        list(self._threads.map(self._poll_feed, *zip(*feeds, strict=True)))

    def stored(self) -> list[str]:
        """Return the links of all articles."""
        with self._database.connection() as connection:
            return [url for (url,) in connection.execute("SELECT url FROM script_articles")]

    def _poll_feed(self, url: str, etag: str | None, last_modified: str | None) -> None:
        asked = {"If-None-Match": etag, "If-Modified-Since": last_modified}
        answer = self._fetch(url, {name: value for name, value in asked.items() if value})
        articles = self._read(answer) if answer.status == 200 else []
        with self._database.connection() as connection:
            if articles:
                rows = [(article.url, url, *article[1:]) for article in articles]
                connection.cursor().executemany(INSERT, rows)
            validators = [answer.headers.get("ETag"), answer.headers.get("Last-Modified")]
            connection.execute(UPDATE, [answer.status, *validators, url])

    @abstractmethod
    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        """Send one request."""

    @abstractmethod
    def _read(self, answer: Answer) -> list[Article]:
        """Return the entries of a feed."""


class UsualScript(Script):
    """httpx and feedparser, with what they do by default. feedparser reads no JSON Feed, so this reads it itself."""

    NAME = "httpx + feedparser"

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._client = httpx.Client(timeout=30.0, follow_redirects=True)

    def close(self) -> None:
        """Close the client, too."""
        super().close()
        self._client.close()

    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        answer = self._client.get(url, headers=headers)
        return Answer(answer.status_code, answer.content, answer.headers)

    def _read(self, answer: Answer) -> list[Article]:
        if "json" in answer.headers["Content-Type"]:
            items = json.loads(answer.body)["items"]
            return [
                Article(item["url"], item["title"], item["content_html"], "", item["date_published"]) for item in items
            ]
        return [
            Article(
                entry.link,
                entry.title,
                entry.content[0].value if "content" in entry else entry.get("summary", ""),
                entry.get("author", ""),
                entry.get("published"),
            )
            for entry in feedparser.parse(answer.body).entries
        ]


class FastScript(Script):
    """The same with what is fastest: urllib3 and fastfeedparser, whose core is compiled."""

    NAME = "urllib3 + fastfeedparser"

    def __init__(self, database_url: str) -> None:
        super().__init__(database_url)
        self._client = urllib3.PoolManager(num_pools=THREADS, timeout=30.0)

    def _fetch(self, url: str, headers: dict[str, str]) -> Answer:
        answer = self._client.request("GET", url, headers={**headers, "Accept-Encoding": "gzip"})
        return Answer(answer.status, answer.data, answer.headers)

    def _read(self, answer: Answer) -> list[Article]:
        return [
            Article(
                entry["link"],
                entry["title"],
                entry["content"][0]["value"] if entry.get("content") else entry.get("description", ""),
                entry.get("author", ""),
                entry.get("published"),
            )
            for entry in fastfeedparser.parse(answer.body).entries
        ]
