"""`feedmill feeds add`, against a real database."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.errors import ConfigurationError


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
