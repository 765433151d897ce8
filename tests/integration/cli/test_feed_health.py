"""`feedmill feeds list --health`, `feeds show` and `feeds set --date-order`, against a real database."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest
from typer.testing import CliRunner

from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.errors import ConfigurationError
from tests.integration.cli.test_feed_commands import change

Run = Callable[..., str]


@pytest.fixture
def feeds(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.delenv("FEEDMILL_AMQP_URL", raising=False)
    with connect(database_url) as connection:
        for number in range(1, 5):
            add_feed(connection, NewFeed(f"http://site-{number}.example/feed"))
        connection.execute(
            """
            UPDATE feeds SET last_success_at = '2026-01-01', last_attempt_at = now(), last_new_at = now(),
                last_outcome = 'fetched', next_fetch_at = now() + interval '5 hours';
            UPDATE feeds SET failures = 3, last_outcome = 'hard_error', last_error = 'http 404',
                failing_since = '2026-01-02 12:00:00+00' WHERE id = 2;
            UPDATE feeds SET ambiguous_since = now() WHERE id = 3;
            UPDATE feeds SET duplicate_of = 1 WHERE id = 4
            """
        )

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["feeds", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def test_the_list_says_how_each_feed_is(feeds: Run) -> None:
    said = feeds("list", "--utc")
    for words in ("healthy", "failing since 2026-01-02 12:00:00", "dates ambiguous", "duplicate of feed 1"):
        assert words in said


@pytest.mark.parametrize("spelled", ["dates_ambiguous", "dates ambiguous", "Dates-Ambiguous"])
def test_the_list_is_chosen_by_a_word(feeds: Run, spelled: str) -> None:
    (found,) = json.loads(feeds("list", "--health", spelled, "--json"))
    assert (found["id"], found["health"]["word"]) == (3, "dates_ambiguous")


def test_an_unknown_word_is_an_error_that_names_the_known_ones(feeds: Run) -> None:
    with pytest.raises(ConfigurationError, match=r"healthy.*stale"):
        feeds("list", "--health", "well")


def test_one_feed_says_why_and_what_to_do(feeds: Run) -> None:
    said = " ".join(feeds("show", "2", "--utc").split())
    assert "failing since 2026-01-02 12:00:00" in said
    assert "3 polls in a row failed: refused, or set up wrongly: http 404" in said
    assert "Correct its URL or its login" in said


def test_a_person_decides_the_order_once(feeds: Run, database_url: str) -> None:
    assert "--date-order day" in " ".join(feeds("show", "3").split())
    feeds("set", "3", "--date-order", "day")
    said = feeds("show", "3")
    assert "healthy" in said
    assert "03/04/2026 has the day first, as set" in said
    change(database_url, "UPDATE feeds SET date_order_seen = 'month'")
    feeds("set", "3", "--date-order", "auto")
    assert "03/04/2026 has the month first, as its dates prove" in feeds("show", "3")
    with pytest.raises(ConfigurationError, match="date_order"):
        feeds("set", "3", "--date-order", "year")
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT date_order FROM feeds WHERE id = 3").fetchone() == (None,)
