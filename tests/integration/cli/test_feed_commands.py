"""`feedmill feeds show|set|fetch|remove`, against a real database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from typer.testing import CliRunner

from services.admin.registry import NewFeed, add_feed, connect
from services.cli.__main__ import app
from shared.errors import ConfigurationError, Unavailable
from tests.integration.counting import count

URL = "http://me:secret@news.example/feed"

Run = Callable[..., str]


@pytest.fixture
def feeds(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.delenv("FEEDMILL_AMQP_URL", raising=False)
    with connect(database_url) as connection:
        add_feed(connection, NewFeed(URL))
        connection.execute("UPDATE feeds SET next_fetch_at = now() + interval '5 hours'")

    def run(*arguments: str, typed: str = "") -> str:
        result = CliRunner().invoke(app, ["feeds", *arguments], input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def row(database_url: str) -> dict[str, Any]:
    with psycopg.connect(database_url, row_factory=dict_row) as connection:
        found = connection.execute("SELECT *, next_fetch_at - now() AS wait FROM feeds").fetchone()
    assert found is not None
    return found


def change(database_url: str, statement: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(statement.encode())


def test_a_feed_is_shown_with_its_state_health_and_attempts(feeds: Run, database_url: str) -> None:
    assert "never polled" in feeds("show", "1")
    change(
        database_url,
        """
        UPDATE feeds SET last_outcome = 'hard_error', last_error = 'http 404', failures = 2, poll_seconds = 7300,
            items_per_day = 1.234, last_success_at = now() - interval '3 hours', skip_hours = '{1,2}',
            skip_days = '{6}', ttl_seconds = 600,
            lying_since = now(), claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour';
        INSERT INTO throttled_groups VALUES ('news.example', now() + interval '1 hour');
        INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
            attempt, items_seen, items_new, wire_bytes, decoded_bytes, status, error)
        SELECT gen_random_uuid(), 1, now(), now() - n * interval '1 hour', 0.5, n > 1, 'hard_error', true, 0, 7, 3,
            0, 0, 404, 'http 404' FROM generate_series(1, 4) AS n
        """,
    )
    said = feeds("show", URL)
    for part in (
        "about every 2 hours",
        "1.23 articles a day",
        "the feed asks for 10 minutes",
        "not in the hours 1, 2 (UTC)",
        "not on Sunday",
    ):
        assert part in said
    for part in ("4 attempts, 75 % good, 0.50 s each", "3 hours ago", "http 404", "deferred", "304 untrue"):
        assert part in said
    assert "host throttled until" in said
    assert "secret" not in said
    machine = json.loads(feeds("show", "1", "--json", "--attempts", "2"))
    assert (len(machine["last_attempts"]), machine["success_rate"]) == (2, 0.75)
    assert "secret" not in str(machine)


def test_a_shorter_interval_counts_from_now(feeds: Run, database_url: str) -> None:
    feeds("set", "1", "--interval", "60", "--priority", "3", "--name", "News")
    found = row(database_url)
    assert (found["interval_seconds"], found["priority"], found["name"]) == (60, 3, "News")
    assert found["wait"] <= timedelta(seconds=60)
    feeds("set", "1", "--interval", "0", "--shortest", "30", "--longest", "40")
    found = row(database_url)
    assert (found["interval_seconds"], found["shortest_seconds"], found["longest_seconds"]) == (None, 30, 40)
    assert found["wait"] <= timedelta(seconds=40)


def test_a_feed_is_disabled_and_enabled_with_its_past_forgotten(feeds: Run, database_url: str) -> None:
    feeds("set", "1", "--disable")
    assert (row(database_url)["enabled"], row(database_url)["disabled_reason"]) == (False, "by hand")
    with pytest.raises(ConfigurationError, match="feed 1 is disabled"):
        feeds("fetch", "1")
    change(database_url, "UPDATE feeds SET failures = 9, gone_since = now()")
    feeds("set", "1", "--enable")
    found = row(database_url)
    assert (found["enabled"], found["disabled_reason"], found["failures"], found["gone_since"]) == (True, None, 0, None)
    assert timedelta() < found["wait"] <= timedelta(minutes=5)


def test_a_feed_is_polled_at_once_if_somebody_asks(feeds: Run, database_url: str) -> None:
    feeds("fetch", URL)
    assert row(database_url)["due_at"] <= datetime.now(UTC)


WAITS = """
UPDATE feeds SET last_outcome = 'soft_error', last_error = 'the server answered 503', issued_at = NULL,
    claim_id = gen_random_uuid(), claim_expires_at = '2100-01-01 13:00:00+00', next_fetch_at = now();
INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final, attempt,
    items_seen, items_new, wire_bytes, decoded_bytes, error_class)
SELECT gen_random_uuid(), 1, now(), now() - n * interval '1 hour', 0.5, false, 'soft_error', false, 3 - n, 0, 0, 0, 0,
    'http_503' FROM generate_series(1, 3) AS n
"""


def test_a_feed_that_waits_for_its_retry_is_failing_and_says_which_and_when(feeds: Run, database_url: str) -> None:
    change(database_url, WAITS)
    assert "retry 3 of 12 at 2100-01-01 12:00:00" in feeds("list", "--utc")
    assert "1 feeds, 1 failing; times in UTC" in feeds("list", "--utc")
    assert "retry 3 of 12 at 2100-01-01 12:00:00 UTC" in feeds("show", "1", "--utc")
    (listed,) = json.loads(feeds("list", "--json"))
    assert (listed["failing"], listed["retry"], listed["retries"], listed["failures"]) == (True, 3, 12, 0)
    counts = asyncio.run(count(database_url))
    assert (counts.failing, counts.retrying) == (1, 1)


def test_without_a_broker_it_is_said_until_when_a_retry_waits(feeds: Run, database_url: str) -> None:
    change(database_url, WAITS)
    with pytest.raises(Unavailable, match=r"waits, retry 3 of 12 at .*2100.*without RabbitMQ"):
        feeds("fetch", "1")


def test_a_host_that_is_left_alone_is_named_instead_of_due(feeds: Run, database_url: str) -> None:
    change(database_url, WAITS)
    change(database_url, "UPDATE feed_fetch_log SET error_class = 'connect', started_at = now()")
    assert "could not be connected to, and fetchers leave it alone until" in feeds("fetch", "1")
    change(database_url, "INSERT INTO throttled_groups VALUES ('news.example', '2100-01-01')")
    assert "asked to be left alone until 2100-01-01 00:00:00 UTC" in feeds("fetch", "1", "--utc")


def test_a_feed_that_is_in_flight_says_so_and_one_whose_job_was_dropped_is_due(feeds: Run, database_url: str) -> None:
    change(database_url, WAITS + "; UPDATE feeds SET issued_at = now()")
    assert "it is being fetched" in feeds("fetch", "1")
    change(database_url, "UPDATE feeds SET claim_id = NULL, issued_at = NULL")
    assert "is due now" in feeds("fetch", "1")
    assert row(database_url)["due_at"] <= datetime.now(UTC)


def test_feeds_are_listed_by_a_word_and_with_their_whole_urls(feeds: Run, database_url: str) -> None:
    url = "http://other.example/" + "long/" * 40
    with connect(database_url) as connection:
        add_feed(connection, NewFeed(url, name="The Other"))
    assert url in feeds("list")
    assert "1 feeds" in feeds("list", "--grep", "the OTHER")
    assert "1 feeds" in feeds("list", "--limit", "1")
    assert "0 feeds" in feeds("list", "--grep", "%")


def test_spans_are_written_as_people_say_them(feeds: Run, database_url: str) -> None:
    feeds("set", "1", "--interval", "5m", "--longest", "1d")
    assert (row(database_url)["interval_seconds"], row(database_url)["longest_seconds"]) == (300, 86_400)
    assert "5m, 2h or 1d" in feeds("set", "1", "--interval", "5x")


def test_a_feed_is_removed_after_a_question(feeds: Run, database_url: str) -> None:
    assert "remove feed 1 and its 0 pending articles?" in feeds("remove", "1", typed="n\n")
    assert row(database_url)["id"] == 1
    feeds("remove", "1", "--yes")
    with psycopg.connect(database_url) as connection:
        assert connection.execute("SELECT count(*) FROM feeds").fetchone() == (0,)


def test_reported_changes_stay_if_the_next_feed_stops_the_command(feeds: Run, database_url: str) -> None:
    with connect(database_url) as connection:
        add_feed(connection, NewFeed("http://other.example/feed"))
    assert "feed 1 was removed" in feeds("remove", "1", "2", typed="y\nn\n")
    assert row(database_url)["id"] == 2
    with pytest.raises(ConfigurationError, match="there is no feed"):
        feeds("fetch", "2", "3")
    assert row(database_url)["due_at"] <= datetime.now(UTC)


@pytest.mark.parametrize("feed", ["2", "http://other.example/", "9" * 30, "x"])
def test_a_feed_that_is_not_there_is_a_sentence(feeds: Run, feed: str) -> None:
    for command in (["show"], ["set", "--priority", "1"], ["fetch"], ["remove", "--yes"]):
        with pytest.raises(ConfigurationError, match="there is no feed"):
            feeds(*command, feed)


def test_a_command_without_any_change_is_refused(feeds: Run) -> None:
    with pytest.raises(ConfigurationError, match="nothing to change"):
        feeds("set", "1")


def test_everything_is_said_in_json_too(feeds: Run, database_url: str) -> None:
    (changed,) = json.loads(feeds("set", "1", "--name", "News", "--tag", "news", "--json"))
    assert (changed["name"], changed["tags"]) == ("News", ["news"])
    (polled,) = json.loads(feeds("fetch", URL, "--json"))
    assert (polled["id"], polled["polling"], polled["until"]) == (1, "due", None)
    assert json.loads(feeds("tags", "--json")) == [{"tag": "news", "feeds": 1, "enabled": 1}]
    added = json.loads(feeds("add", "http://other.example/feed", "--source-type", "feed", "--json"))
    assert (added["id"], added["is_new"], added["notes"]) == (2, True, [])
    assert json.loads(feeds("remove", "1", "2", "--yes", "--json")) == [
        {"id": 1, "pending_articles": 0},
        {"id": 2, "pending_articles": 0},
    ]


def test_what_was_done_before_an_error_is_json(
    feeds: Run, database_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result = CliRunner().invoke(app, ["feeds", "remove", "1", "7", "--yes", "--json"])
    assert isinstance(result.exception, ConfigurationError)
    assert json.loads(result.stdout) == [{"id": 1, "pending_articles": 0}]


def test_feeds_are_listed_by_state_and_host_in_an_order(feeds: Run, database_url: str) -> None:
    with connect(database_url) as connection:
        for name in "BC":
            add_feed(connection, NewFeed(f"http://{name}.example/feed", name=name))
    assert [row["id"] for row in json.loads(feeds("list", "--json", "--sort", "-name"))] == [3, 2, 1]
    assert [row["id"] for row in json.loads(feeds("list", "--json", "--state", "due", "--host", "c.example"))] == [3]
    assert [row["id"] for row in json.loads(feeds("list", "--json", "--limit", "2"))] == [1, 2]
    with pytest.raises(ConfigurationError, match=r"state.*'enabled', 'disabled'"):
        feeds("list", "--state", "nonsense")
    assert "news" in feeds("set", "2", "--tag", "news") + feeds("tags")


def test_an_interval_under_a_second_is_refused(feeds: Run, database_url: str) -> None:
    for option in ("--interval", "--shortest", "--longest"):
        said = " ".join(feeds("set", "1", option, "0.5").replace("│", " ").split())
        assert "expected 0 or 1 to 31,536,000 seconds" in said
    assert row(database_url)["interval_seconds"] is None
    with pytest.raises(ConfigurationError, match=r"--shortest .* is more than --longest"):
        feeds("set", "1", "--shortest", "1h", "--longest", "1m")
