"""Schedulers that are killed in the middle of their work, side by side: no feed is forgotten, none is in two hands."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from itertools import pairwise
from uuid import UUID

import psycopg
import pytest

from shared.wire.jobs import FetchFeed
from tests.e2e.fetcher.fetcher_bench import Queues
from tests.e2e.test_services import Service, running

pytestmark = pytest.mark.e2e

FEEDS = 1_200
CLAIM_SECONDS = 4
KILLS = 5


def test_schedulers_killed_again_and_again_forget_no_feed_and_issue_none_twice_within_a_claim(
    amqp_url: str, database_url: str
) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(
            """
            INSERT INTO feeds (url, politeness_group)
            SELECT format('http://h%%s.example/%%s', n %% 90, n), format('h%%s.example', n %% 90)
            FROM generate_series(1, %s) AS n
            """,
            [FEEDS],
        )
    settings = {
        "FEEDMILL_AMQP_URL": amqp_url,
        "FEEDMILL_DATABASE_URL": database_url,
        "FEEDMILL_CLAIM_BATCH": "60",
        "FEEDMILL_CLAIM_SECONDS": str(CLAIM_SECONDS),
        "FEEDMILL_FETCHER_HIGH_WATER": "1000000",
        "FEEDMILL_TICK_SECONDS": "0.05",
        "FEEDMILL_FETCHER_SHARDS": "1",  # all jobs in one place, to be looked at
    }
    chance = random.Random(5)
    with running("scheduler", **settings):  # it lives all along, and works beside those that die
        for _ in range(KILLS):
            with running("scheduler", **settings) as doomed:
                doomed.wait_for("started")
                time.sleep(chance.uniform(0.1, 0.6))
                doomed.process.kill()
    killed_at = time.monotonic()
    with running("scheduler", **settings) as last:
        while time.monotonic() < killed_at + CLAIM_SECONDS + 1 or count_due(database_url):
            time.sleep(0.05)
        stop(last)
    jobs = asyncio.run(jobs_in_queue(amqp_url))
    live = live_claims(database_url)
    assert len(live) == FEEDS
    issued = {(job.feed_id, job.claim_id) for job in jobs}
    assert set(live.items()) <= issued
    assert max(Counter(job.claim_id for job in jobs).values()) == 1
    assert_claims_follow_each_other(jobs)


def stop(service: Service) -> None:
    assert service.stop() == 0


def count_due(database_url: str) -> int:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM feeds WHERE due_at <= now()").fetchone()
    assert row is not None
    return int(row[0])


def live_claims(database_url: str) -> dict[int, UUID]:
    with psycopg.connect(database_url) as connection:
        return dict(connection.execute("SELECT id, claim_id FROM feeds WHERE claim_id IS NOT NULL").fetchall())


async def jobs_in_queue(amqp_url: str) -> list[FetchFeed]:
    found = await Queues(amqp_url).look("fetcher.00")
    return [FetchFeed.decode(delivery.body, delivery.content_encoding) for delivery in found]


def assert_claims_follow_each_other(jobs: list[FetchFeed]) -> None:
    """A feed is issued again only after the claim of its job before had run out."""
    by_feed: dict[int, list[FetchFeed]] = {}
    for job in sorted(jobs, key=lambda job: job.queued_at):
        by_feed.setdefault(job.feed_id, []).append(job)
    for issued in by_feed.values():
        for before, after in pairwise(issued):
            assert after.queued_at >= before.not_after
