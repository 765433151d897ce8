"""`feedmill feeds add`, against a real database."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.errors import ConfigurationError
from tests.integration.fetcher.raw_server import answer, saying, serving
from tests.manners import sites
from tests.unit.parse.feeds import rss


@pytest.fixture
def add(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.setenv("FEEDMILL_AMQP_URL", "amqp://127.0.0.1:1/")

    def run(*arguments: str, typed: str = "") -> str:
        result = CliRunner().invoke(app, ["feeds", "add", *arguments], input=typed, catch_exceptions=True)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def stored_config(database_url: str) -> Any:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT source_config FROM feeds").fetchone()
        assert row is not None
        return row[0]


def test_a_feed_may_bring_headers_credentials_and_a_deadline_of_its_own(add: Any, database_url: str) -> None:
    arguments = ["--header", "X-Key: a:b", "--header", "Accept:text/xml", "--user", "me:pass:word", "--timeout", "90"]
    said = add("http://user:secret@news.example/feed", *arguments)
    assert stored_config(database_url) == {
        "headers": {"X-Key": "a:b", "Accept": "text/xml"},
        "user": "me",
        "password": "pass:word",
        "timeout_seconds": 90.0,
    }
    assert "secret" not in said


def test_a_password_is_asked_for_and_not_shown(add: Any, database_url: str) -> None:
    said = add("http://news.example/feed", "--user", "me", typed="hunter2\n")
    assert stored_config(database_url) == {"user": "me", "password": "hunter2"}
    assert "hunter2" not in said


def test_a_password_on_the_command_line_is_warned_of(add: Any, database_url: str) -> None:
    said = add("http://me:hunter2@news.example/feed", "--user", "me:hunter2", "--header", "X-Api-Key: hunter2")
    for way in ("--password-file", "FEEDMILL_FEED_PASSWORD", "--header-file"):
        assert way in said
    assert "hunter2" not in said
    assert "warning" not in add("http://news.example/feed", "--header", "Accept: text/xml")


def test_secrets_come_from_files_and_the_environment(
    add: Any, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "password").write_text("hunter2 \r\nmore\n")
    (tmp_path / "headers").write_text("X-Api-Key: k\n\nAccept: text/xml\n")
    files = ["--password-file", str(tmp_path / "password"), "--header-file", str(tmp_path / "headers")]
    said = add("http://news.example/feed", "--user", "me", *files)
    headers = {"X-Api-Key": "k", "Accept": "text/xml"}
    assert stored_config(database_url) == {"user": "me", "password": "hunter2 ", "headers": headers}
    assert "warning" not in said
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM feeds")
    monkeypatch.setenv("FEEDMILL_FEED_PASSWORD", "sesame")
    add("http://news.example/feed", "--user", "me")
    assert stored_config(database_url) == {"user": "me", "password": "sesame"}
    monkeypatch.delenv("FEEDMILL_FEED_PASSWORD")
    add("http://b.example/feed", "--user", "me", "--password-file", "-", typed="typed\n")
    for arguments in (["--password-file", "x"], ["--user", "me", "--password-file", "/nowhere"]):
        with pytest.raises(ConfigurationError, match=r"--user NAME|can't be read"):
            add("http://c.example/feed", *arguments)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--header", "no colon"], "--header: expected 'Name: value'"),
        (["--header", "Host: evil"], "headers.Host"),
        (["--timeout", "0.1"], "timeout_seconds: expected a number from 1 to 300"),
        (["--user", "me:pass\nword"], "password: expected"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_at_once(add: Any, arguments: list[str], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        add("http://news.example/feed", *arguments)
    assert complaint in str(caught.value)
    assert "word" not in str(caught.value).replace("password", "")


PAGE = b"""<html><head><link rel=alternate type="application/rss+xml" title="[/b] Posts" href="/posts.xml">
<link rel=alternate type="application/rss+xml" title="Comments" href="/comments.xml"></head></html>"""


def test_of_a_page_its_first_feed_is_added_and_said(
    add: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    with serving(saying(answer(200, PAGE))) as server:
        said = add(server.url("/blog/"))
        assert len(server.requests) == 1
        assert f"a page with 2 feeds; took {server.url('/posts.xml')}" in said
        assert add(server.url("/blog/"), "--no-check").endswith("added as feed 2\n")
        assert add(server.url("/feed")).endswith("added as feed 3\n")
        assert len(server.requests) == 1
        assert "took" in add(server.url("/feed"), "--check", "--yes")
        assert "is there already" in add(server.url("/posts.xml"))
        assert len(server.requests) == 2
    with psycopg.connect(database_url) as connection:
        urls = [row[0] for row in connection.execute("SELECT url FROM feeds ORDER BY id")]
    assert urls == [server.url(path) for path in ("/posts.xml", "/blog/", "/feed")]


def test_a_page_without_a_feed_is_not_added(add: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("FEEDMILL_HOST_MIN_INTERVAL_SECONDS", "0.01")
    with (
        serving(saying(answer(200, b"<html>"))) as server,
        pytest.raises(ConfigurationError, match="no feed was found"),
    ):
        add(server.url("/"))


FEED = rss("<item><title>t</title><link>http://news.example/1</link></item>").encode()


def rows(database_url: str, query: LiteralString) -> list[Any]:
    with psycopg.connect(database_url) as connection:
        return connection.execute(query).fetchall()


STATE: LiteralString = """
SELECT url, etag, last_modified, validators_url, last_outcome, claim_id, next_fetch_at > now() + '1 minute', failures
FROM feeds
"""


@pytest.mark.parametrize("place", ["/", "/feed"])
def test_a_feed_that_is_found_is_polled_with_that_and_its_validators_come_with_its_articles(
    add: Any, database_url: str, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("FEEDMILL_HOST_MIN_INTERVAL_SECONDS", "0.01")
    pages = {"/": answer(200, b"<html>"), place: answer(200, FEED, ETag='"1"', Last_Modified="monday")}
    with serving(lambda connection, head: connection.sendall(pages[head.split(" ")[1]])) as server:
        assert add(server.url("/")).endswith("added as feed 1\n")
        assert len(server.requests) == (1 if place == "/" else 2)
        url = server.url(place)
        assert rows(database_url, STATE) == [(url, '"1"', "monday", url, "fetched", None, True, 0)]
        assert rows(database_url, "SELECT feed_id, title FROM pending_articles") == [(1, "t")]
        assert rows(database_url, "SELECT feed_id, outcome, items_new FROM feed_fetch_log") == [(1, "fetched", 1)]
        assert "is there already" in add(url)
        assert len(server.requests) == (1 if place == "/" else 2)


def test_a_feed_in_trouble_is_not_asked_again_at_once_and_its_host_is_left_alone(
    add: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    with serving(saying(answer(429, Retry_After="7200"))) as server:
        assert "the server answered 429" in add(server.url("/"))
        assert "left alone until" in add(server.url("/other"))
        assert len(server.requests) == 1
    throttled, unasked = rows(
        database_url, "SELECT last_outcome, next_fetch_at > now() + '1 hour' FROM feeds ORDER BY id"
    )
    assert (throttled, unasked) == (("throttled", True), (None, False))


def test_a_feed_that_could_not_be_checked_is_due_at_once(
    add: Any, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    add("http://127.0.0.1:1/")
    assert rows(database_url, "SELECT last_outcome, claim_id, next_fetch_at <= now() FROM feeds") == [
        (None, None, True)
    ]


def test_a_page_takes_no_secret_to_another_origin(add: Any, database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    page = b'<link rel=alternate type="application/rss+xml" href="http://other.example/rss">'
    with serving(saying(answer(200, page))) as server:
        add(server.url("/"), "--user", "me:secret", "--timeout", "9")
    assert stored_config(database_url) == {"timeout_seconds": 9.0}


def test_commands_side_by_side_ask_one_host_one_after_the_other(database_url: str) -> None:
    """Four processes; the distance is measured where the kernel takes the requests in, however busy this process is."""
    site = sites.Site({f"/{n}": [answer(200, FEED)] for n in range(4)})
    servers = {"FEEDMILL_DATABASE_URL": database_url, "FEEDMILL_AMQP_URL": "amqp://127.0.0.1:1/"}
    pace = {"FEEDMILL_ALLOW_NETWORKS": "127.0.0.0/8", "FEEDMILL_HOST_MIN_INTERVAL_SECONDS": "0.5"}
    with sites.serving(site):
        argv = [sys.executable, "-m", "services.cli", "feeds", "add"]
        running = [
            subprocess.Popen([*argv, site.url(f"/{n}")], env=os.environ | servers | pace, stdout=subprocess.DEVNULL)
            for n in range(4)
        ]
        assert [process.wait(60) for process in running] == [0] * 4
    arrived = sorted(visit.arrived for visit in site.visits)
    assert len(arrived) == 4
    assert min(later - earlier for earlier, later in itertools.pairwise(arrived)) > 0.45
    assert rows(database_url, "SELECT count(*) FROM feeds WHERE last_outcome = 'fetched'") == [(4,)]
