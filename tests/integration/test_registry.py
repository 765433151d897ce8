"""`feedmill feeds add`, against a real database."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from services.cli.discovery import NoFeed
from shared.errors import ConfigurationError
from tests.integration.raw_server import answer, saying, serving


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
    with psycopg.connect(database_url) as connection:
        urls = [row[0] for row in connection.execute("SELECT url FROM feeds ORDER BY id")]
    assert urls == [server.url(path) for path in ("/posts.xml", "/blog/", "/feed")]


def test_a_page_without_a_feed_is_not_added(add: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setattr("services.cli.discovery.SPACING_SECONDS", 0.0)
    with serving(saying(answer(200, b"<html>"))) as server, pytest.raises(NoFeed, match="no feed was found"):
        add(server.url("/"))
