"""`feedmill pending …`, against a real database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.errors import ConfigurationError, Unavailable
from tests.integration.consumers.test_pending_articles import (
    Connection,
    change_text,
    claim,
    connect,
    dead,
    fail,
    fill,
    keys,
    let_time_pass,
)

Run = Callable[..., str]


@pytest.fixture
def db(database_url: str) -> Iterator[Connection]:
    with connect(database_url) as connection:
        connection.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://x/', 'x')")
        yield connection


@pytest.fixture
def pending(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    monkeypatch.delenv("FEEDMILL_AMQP_URL", raising=False)

    def run(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["pending", *arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


def test_articles_are_counted_by_what_they_wait_for(pending: Run, db: Connection) -> None:
    nothing = {"pending": 0, "claimable": 0, "claimed": 0, "waiting_for_retry": 0, "lease_expired": 0, "dead": 0}
    assert json.loads(pending("--json")) == {**nothing, "oldest_seconds": None}
    md5s = fill(db, 10)
    claim(db, 4)
    let_time_pass(db)
    lease = claim(db, 3)[0]["lease_id"]
    fail(db, md5s[:1], "no", lease)
    fail(db, md5s[1:2], "no", lease, max_failures=1)
    found = json.loads(pending("--json"))
    assert found.pop("oldest_seconds") == pytest.approx(86_400, abs=60)
    assert found == {
        "pending": 9,
        "claimable": 7,
        "claimed": 1,
        "waiting_for_retry": 1,
        "lease_expired": 1,
        "dead": 1,
    }
    assert "oldest" in pending()


def test_articles_are_listed_as_they_will_be_given_out(pending: Run, db: Connection) -> None:
    md5s = fill(db, 4)
    lease = claim(db, 2)[0]["lease_id"]
    fail(db, md5s[:1], "no [/b] good", lease)
    listed = json.loads(pending("list", "--json"))
    assert [(row["md5"], row["state"]) for row in listed] == [
        (md5s[2], "new"),
        (md5s[3], "new"),
        (md5s[0], "waiting for retry"),
        (md5s[1], "claimed"),
    ]
    let_time_pass(db)
    listed = json.loads(pending("list", "--json", "--limit", "3"))
    assert [row["state"] for row in listed] == ["back", "lease expired", "new"]
    assert [row["md5"] for row in listed] == keys(claim(db, 3))
    assert "no [/b] good" in pending("list")
    assert all(md5 in pending("list") for md5 in md5s)


def test_one_article_is_shown_pending_or_dead_or_said_to_be_gone(pending: Run, db: Connection) -> None:
    (md5,) = fill(db, 1)
    db.execute("UPDATE pending_articles SET detected_language = 'en', language_confidence = 0.9, topic = 'sport'")
    shown = pending("show", md5)
    assert "title: Article 1" in shown
    assert "detected_language: en (90 %)\ntopic: sport\n" in shown
    assert md5 in pending("list", "--detected-language", "en", "--topic", "sport", "--duplicate-kind", "none")
    assert "0 shown" in pending("list", "--topic", "none")
    claim(db)
    fail(db, [md5], "too long", max_failures=1)
    shown = json.loads(pending("show", md5, "--json"))
    assert (shown["state"], shown["error"], shown["retry_count"]) == ("dead", "too long", 1)
    with pytest.raises(ConfigurationError, match="there is no article x, pending or dead"):
        pending("show", "x")


def test_articles_are_acknowledged_and_released_by_hand(pending: Run, db: Connection) -> None:
    md5s = fill(db, 3)
    claim(db)
    assert "1 released" in pending("release", md5s[0], "unknown")
    assert keys(claim(db)) == md5s[:1]
    assert "1 acknowledged" in pending("ack", md5s[0], "unknown")
    assert "0 acknowledged" in pending("ack", md5s[0])


def test_the_dead_are_listed_and_revived(pending: Run, db: Connection) -> None:
    md5s = fill(db, 3)
    claim(db)
    fail(db, md5s, "ValueError: odd", max_failures=1)
    assert "ValueError: odd" in pending("dead")
    assert {row["md5"] for row in json.loads(pending("dead", "--json"))} == set(md5s)
    assert "1 revived" in pending("revive", md5s[0])
    with pytest.raises(ConfigurationError, match="1 not: they are not dead"):
        pending("revive", md5s[0])
    assert "2 revived" in pending("revive", "--all")
    assert "0 revived" in pending("revive", "--all")
    assert dead(db) == []
    for wrong in ([], [md5s[0], "--all"]):
        with pytest.raises(ConfigurationError, match="say which"):
            pending("revive", *wrong)


def test_an_article_is_found_by_the_beginning_of_its_key(pending: Run, db: Connection) -> None:
    md5s = fill(db, 3)
    db.execute("UPDATE pending_articles SET md5 = left(md5, 20) || '000000000000' WHERE md5 = %s", [md5s[0]])
    twin = md5s[0][:20] + "111111111111"
    db.execute("UPDATE pending_articles SET md5 = %s WHERE md5 = %s", [twin, md5s[1]])
    assert "title: Article 3" in pending("show", md5s[2][:4].upper())
    for command in ("show", "ack", "release", "bury"):
        with pytest.raises(
            ConfigurationError, match=f"'{twin[:8]}' is ambiguous, give more of it: it begins {twin[:8]}"
        ):
            pending(command, twin[:8])
    assert "1 acknowledged" in pending("ack", twin[:21])
    assert "0 acknowledged; 1 not" in pending("ack", md5s[2][:3])  # too short to mean an article
    assert "1 moved to the dead" in pending("bury", md5s[2][:6])
    assert "title: Article 3" in pending("show", md5s[2][:6])
    assert "1 revived" in pending("revive", md5s[2][:6])


def test_an_article_is_moved_to_the_dead_by_hand_with_a_reason(pending: Run, db: Connection) -> None:
    md5s = fill(db, 2)
    claim(db, 1)
    assert "2 moved to the dead; 1 not" in pending("bury", *md5s, "unknown", "--reason", "not news")
    assert [(found["md5"], found["error"]) for found in dead(db)] == [(md5, "not news") for md5 in sorted(md5s)]
    assert "not news" in pending("dead")


def test_articles_are_listed_by_feed_and_by_a_word(pending: Run, db: Connection) -> None:
    md5s = fill(db, 3)
    db.execute("INSERT INTO feeds (url, politeness_group) VALUES ('http://y/', 'y')")
    db.execute("UPDATE pending_articles SET feed_id = 2, title = '100 %% Wool' WHERE md5 = %s", [md5s[1]])
    for command, prepare in (("list", ""), ("dead", f"SELECT bury_articles(ARRAY{md5s}, 'why')")):
        db.execute(prepare.encode() or b"SELECT 1")
        for options in (["--feed", "2"], ["--feed", "http://y/"], ["--grep", "% wool"]):
            assert [found["md5"] for found in json.loads(pending(command, "--json", *options))] == [md5s[1]]
        assert json.loads(pending(command, "--json", "--grep", "NEWS.example/3"))[0]["md5"] == md5s[2]
        assert "1 shown; times in UTC" in pending(command, "--limit", "1", "--utc")


def test_a_script_claims_fails_renews_and_acknowledges(pending: Run, db: Connection) -> None:
    md5s = fill(db, 4)
    claimed = [json.loads(line) for line in pending("claim", "--max", "3", "--lease", "10m").splitlines()]
    assert [article["md5"] for article in claimed] == md5s[:3]
    assert claimed[0]["body"] == "text"
    lease = claimed[0]["lease_id"]
    assert "1 renewed" in pending("renew", md5s[0], "--lease-id", lease)
    assert "0 renewed; 1 not" in pending("renew", md5s[0], "--lease-id", "5f0c1d3e-7a52-4c55-9d0f-2c1b6a3e8f10")
    failed = json.loads(pending("fail", md5s[0], "--error", "odd", "--retry-after", "1h", "--json"))["failed"]
    assert [(row["md5"], row["retry_count"]) for row in failed] == [(md5s[0], 1)]
    change_text(db)
    assert "0 acknowledged; 1 not" in pending("ack", "--claimed", md5s[1])
    assert "2 acknowledged" in pending("ack", *md5s[1:3])
    assert len(pending("claim", "--max", "9").splitlines()) == 1
    assert pending("claim", "--wait", "0.2") == ""


def test_a_command_that_was_not_done_for_all_ends_with_one(pending: Run, db: Connection, database_url: str) -> None:
    md5s = fill(db, 1)
    for arguments, code in ((["ack", "unknown"], 1), (["ack", *md5s], 0), (["ack", *md5s], 1), (["bury", *md5s], 1)):
        assert CliRunner().invoke(app, ["pending", *arguments]).exit_code == code


def test_what_a_person_did_stands_in_the_audit_log(pending: Run, db: Connection) -> None:
    md5s = fill(db, 2)
    pending("ack", md5s[0])
    pending("bury", md5s[1], "--reason", "not news")
    pending("revive", "--all")
    rows = db.execute("SELECT action, details->'md5s' AS md5s FROM audit_log ORDER BY id").fetchall()
    assert [tuple(row.values()) for row in rows] == [
        ("article.ack", md5s[:1]),
        ("article.bury", md5s[1:]),
        ("article.revive", md5s[1:]),
    ]


def test_the_ledger_of_a_feed_is_listed(pending: Run, db: Connection) -> None:
    db.execute(
        "INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at, entry_key)"
        " SELECT md5(n::text), 1, '', 'http://news.example/' || n, now(), now(), md5(n::text)::uuid"
        " FROM generate_series(1, 3) AS n"
    )
    assert len(json.loads(pending("ledger", "1", "--json"))) == 3
    assert "http://news.example/2" in pending("ledger", "http://x/")


def test_tables_that_are_not_there_yet_are_a_sentence(pending: Run, db: Connection) -> None:
    db.execute("DROP TABLE pending_articles CASCADE")
    with pytest.raises(Unavailable, match="feedmill migrate"):
        pending("list")
