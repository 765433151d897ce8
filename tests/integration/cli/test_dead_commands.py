"""`feedmill dead …` on a real broker: what is listed, found by its beginning, and thrown away only after a question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from services.cli.__main__ import app
from shared.broker.port import Publication
from shared.broker.rabbitmq import RabbitMQ
from shared.errors import ConfigurationError
from shared.settings import BrokerSettings
from tests.factories import make_job

Run = Callable[..., str]
IDS = ("abcdef0" + "1" * 25, "abcdef0" + "2" * 25, "0123456" + "3" * 25)


@pytest.fixture
def dead(amqp_url: str, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("FEEDMILL_AMQP_URL", amqp_url)
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", database_url)
    asyncio.run(fill(amqp_url))

    def run(*arguments: str, typed: str = "") -> str:
        result = CliRunner().invoke(app, ["dead", *arguments], input=typed)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.output

    return run


async def fill(amqp_url: str) -> None:
    topology = BrokerSettings().topology()
    async with RabbitMQ(amqp_url, name="test", max_message_bytes=10**6).connect(topology) as session:
        for number, id_ in enumerate(IDS):
            body, encoding = make_job(feed_id=number).encode()
            headers: dict[str, str | int] = {"reason": "exhausted", "error": f"Bug {number}", "feed_id": number}
            headers["died_at"] = "2026-01-02T03:04:05Z"
            await session.publish(
                Publication(topology.fetcher.dead, body, "feedmill", "feed.fetch.v1", encoding, headers, id_)
            )
        async with asyncio.timeout(30):
            while await session.count_ready(topology.fetcher.dead) != len(IDS):
                await asyncio.sleep(0.02)


def listed(dead: Run, *options: str) -> list[str]:
    return [row["message_id"] for row in json.loads(dead("list", "--json", *options))]


def test_letters_are_listed_by_feed_and_by_a_word(dead: Run) -> None:
    assert listed(dead) == [*IDS]
    assert listed(dead, "--feed", "1") == [IDS[1]]
    assert listed(dead, "--grep", "bug 2") == [IDS[2]]
    assert len(listed(dead, "--most", "1")) == len(listed(dead, "--limit", "1")) == 1
    said = dead("list", "--utc", "--limit", "3")
    assert "2026-01-02 03:04:05" in said
    assert "3 dead letters among the oldest 3 of a queue: --limit looks at more; times in UTC" in said


def test_a_letter_is_found_by_its_beginning(dead: Run) -> None:
    assert "error: Bug 2" in dead("show", "0123")
    for command in ("show", "requeue", "purge"):
        with pytest.raises(ConfigurationError, match="'abcdef' is ambiguous, give more of it"):
            dead(command, "abcdef")
        with pytest.raises(ConfigurationError, match="there is no dead letter ffff"):
            dead(command, "ffff")
    assert "1 requeued" in dead("requeue", "abcdef02")
    assert listed(dead) == [IDS[0], IDS[2]]


def test_letters_are_thrown_away_only_after_a_question(dead: Run) -> None:
    assert "throw 1 dead letters away for good?" in dead("purge", "0123", typed="n\n")
    with pytest.raises(ConfigurationError, match="add --yes"):
        dead("purge", "--all")  # nobody answers
    assert listed(dead) == [*IDS]
    assert "1 purged" in dead("purge", "0123", typed="y\n")
    assert "2 purged" in dead("purge", "--all", "--yes")
    assert "0 purged" in dead("purge", "--all")
    for wrong in ([], ["0123", "--all"]):
        with pytest.raises(ConfigurationError, match="say which"):
            dead("purge", *wrong)


def test_every_command_prints_json(dead: Run) -> None:
    shown = json.loads(dead("show", "0123", "--json"))
    assert (shown["message_id"], shown["headers"]["error"]) == (IDS[2], "Bug 2")
    assert json.loads(shown["body"])["feed_id"] == 2
    assert json.loads(dead("requeue", "0123", "--json")) == {"requeued": 1}
    assert json.loads(dead("purge", "--all", "--yes", "--json")) == {"purged": 2, "ids": [*IDS[:2]]}


def test_letters_can_be_moved_while_the_database_is_away(dead: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEEDMILL_DATABASE_URL", "postgresql://127.0.0.1:1/x")
    assert "1 requeued" in dead("requeue", "0123")
