"""Dead letters over the broker port, on the fake and on RabbitMQ."""

from __future__ import annotations

import asyncio
import gzip
import json
import tracemalloc

import pytest

from services.admin.dead_letters.letters import (
    ROUND,
    SHOWN_CHARACTERS,
    DeadLetter,
    purge_letters,
    read_letters,
    requeue_letters,
    select_stages,
)
from shared.broker.port import Broker, Delivery, Publication
from shared.broker.topology import build_topology
from shared.errors import ConfigurationError
from tests.factories import make_job, make_result

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)
STAGES = list(TOPOLOGY.stages)


async def dead_letter(broker: Broker, message_id: str, queue: str = "fetcher.00", body: bytes | None = None) -> None:
    plain, encoding = (
        make_result(error="x" * 400, url="y" * 5000).encode() if queue == "writer" else make_job().encode()
    )
    letter = Publication(
        routing_key=f"{queue.partition('.')[0]}.dead",
        exchange="",
        body=plain if body is None else body,
        type="feed.fetch.v1",
        content_encoding=encoding,
        headers={"reason": "exhausted", "error": "Bug: x", "first_queue": queue, "attempt": 4, "failures": 5},
        message_id=message_id,
    )
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(letter)


async def ready(broker: Broker, queue: str, number: int) -> None:
    async with broker.connect(TOPOLOGY) as session, asyncio.timeout(30):
        while await session.count_ready(queue) != number:
            await asyncio.sleep(0.01)


async def test_letters_are_listed_and_stay_where_they_are(broker: Broker) -> None:
    for number in range(3):
        await dead_letter(broker, f"m{number}")
    await dead_letter(broker, "w", queue="writer")
    for _ in range(2):
        await ready(broker, "fetcher.dead", 3)
        letters = await read_letters(broker, TOPOLOGY, STAGES, 10)
        assert [letter.delivery.message_id for letter in letters] == ["m0", "m1", "m2", "w"]
    row = letters[0].summary()
    assert (row["reason"], row["error"], row["first_queue"], row["attempt"]) == ("exhausted", "Bug: x", "fetcher.00", 4)


async def test_no_more_than_asked_for_are_looked_at(broker: Broker) -> None:
    for number in range(3):
        await dead_letter(broker, f"m{number}")
    await ready(broker, "fetcher.dead", 3)
    letters = await read_letters(broker, TOPOLOGY, select_stages(TOPOLOGY, "fetcher"), 2)
    assert [letter.delivery.message_id for letter in letters] == ["m0", "m1"]


async def test_a_letter_is_legible_whatever_is_in_it(broker: Broker) -> None:
    await dead_letter(broker, "plain")
    await dead_letter(broker, "garbage", body=b"\xff not JSON")
    await dead_letter(broker, "packed", queue="writer")
    await ready(broker, "fetcher.dead", 2)
    plain, garbage, packed = await read_letters(broker, TOPOLOGY, STAGES, 10, keep=lambda delivery: True)
    assert json.loads(plain.body())["feed_id"] == 1
    assert garbage.body() == "\\xff not JSON"
    assert json.loads(packed.body())["outcome"] == "fetched"


async def test_a_requeued_letter_starts_afresh_where_it_failed(broker: Broker) -> None:
    for name in ("one", "two"):
        await dead_letter(broker, name)
    await ready(broker, "fetcher.dead", 2)
    assert await requeue_letters(broker, TOPOLOGY, STAGES, {"two"}, 10) == 1
    await ready(broker, "fetcher.00", 1)
    await ready(broker, "fetcher.dead", 1)
    inbox: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        await session.consume("fetcher.00", prefetch=1, deliver=inbox.append)
        async with asyncio.timeout(30):
            while not inbox:
                await asyncio.sleep(0.01)
    assert inbox[0].headers == {"attempt": 4}
    assert inbox[0].body == make_job().encode()[0]


@pytest.mark.parametrize("first_queue", ["fetcher", "fetcher.99", "fetcher.retry.v2.3600s"])
async def test_a_job_that_failed_where_no_fetcher_looks_any_more_goes_back_to_its_shard(
    broker: Broker, first_queue: str
) -> None:
    topology = build_topology(
        fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=12
    )
    await dead_letter(broker, "one", first_queue)
    await ready(broker, "fetcher.dead", 1)
    assert await requeue_letters(broker, topology, [topology.fetcher], None, 10) == 1
    await ready(broker, topology.fetcher.queue_of(make_job().group), 1)


async def test_purged_letters_are_gone_and_the_others_are_not(broker: Broker) -> None:
    for name in ("one", "two", "three"):
        await dead_letter(broker, name)
    await ready(broker, "fetcher.dead", 3)
    assert await purge_letters(broker, TOPOLOGY, STAGES, {"one", "three"}, 10) == 2
    await ready(broker, "fetcher.dead", 1)
    assert await purge_letters(broker, TOPOLOGY, STAGES, None, 10) == 1
    await ready(broker, "fetcher.dead", 0)


def test_an_unknown_service_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConfigurationError, match=r"'nobody'.*fetcher, enricher, writer"):
        select_stages(TOPOLOGY, "nobody")


def test_a_dead_letter_is_shown_without_what_its_feed_logs_in_with() -> None:
    config = {"user": "me", "password": "hunter2", "headers": {"X-Key": "sesame"}, "timeout_seconds": 9}
    job = make_job(url="http://me:secret@news.example/feed?token=abc", source_config=config)
    body, encoding = job.encode()
    letter = DeadLetter(
        "fetcher.dead", Delivery("fetcher.dead", body, job.KIND, encoding, {}, "1", False, 1), len(body)
    )
    shown = letter.body()
    for secret in ("hunter2", "sesame", "secret", "abc"):
        assert secret not in shown
    assert '"timeout_seconds": 9' in shown


def letter_of(plain: bytes, *, packed: bool = True) -> DeadLetter:
    body = gzip.compress(plain) if packed else plain
    encoding = "gzip" if packed else None
    return DeadLetter("writer.dead", Delivery("writer.dead", body, "", encoding, {}, "1", False, 1), len(body))


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize(
    "plain",
    [
        b"0" * 50_000_000,
        b"[" * 50_000_000,
        b'{"a":[' + b"{}," * 10_000_000 + b"0]}",
        b"\xff" * 9_000_000,
        b'"' * 50_000_000,
    ],
    ids=lambda plain: plain[:7].hex(),
)
def test_of_a_large_letter_the_beginning_is_shown_and_no_more_is_unpacked(plain: bytes, packed: bool) -> None:
    letter = letter_of(plain, packed=packed)
    tracemalloc.start()
    shown = letter.body()
    assert letter.queue_in(TOPOLOGY.fetcher) == "fetcher.00"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40_000_000
    assert len(shown) < SHOWN_CHARACTERS + 200
    assert "the body goes on" in shown


def test_a_letter_that_is_cut_shows_no_secret_and_nothing_that_acts() -> None:
    config = {"password": "hunter2", "headers": {"X-Odd": "hunter2"}, "x": "\x1b[2J\u202e" + "x" * 5_000_000}
    shown = letter_of(
        json.dumps({"url": "http://u:hunter2@h/", "source_config": config}, ensure_ascii=False).encode()
    ).body()
    assert "hunter2" not in shown
    assert shown.replace("\n", "").isprintable()


def test_a_letter_is_shown_with_nothing_that_acts_and_its_letters() -> None:
    shown = letter_of(json.dumps({"title": "Grüße \x1b[2J\u202e\x9b"}).encode()).body()
    assert "Grüße \\u001b[2J\\u202e\\u009b" in shown


async def test_a_list_holds_no_bodies(broker: Broker) -> None:
    await dead_letter(broker, "one")
    await ready(broker, "fetcher.dead", 1)
    (letter,) = await read_letters(broker, TOPOLOGY, STAGES, 10)
    assert letter.delivery.body == b""
    assert letter.summary()["bytes"] == len(make_job().encode()[0])


async def test_all_letters_are_requeued_some_at_a_time(broker: Broker) -> None:
    for number in range(2 * ROUND + 1):
        await dead_letter(broker, f"m{number}")
    await ready(broker, "fetcher.dead", 2 * ROUND + 1)
    assert await requeue_letters(broker, TOPOLOGY, STAGES, None, 1000) == 2 * ROUND + 1
    await ready(broker, "fetcher.00", 2 * ROUND + 1)
    await ready(broker, "fetcher.dead", 0)
