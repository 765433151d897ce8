"""`python -m services.fetcher`: puts the fetcher together and runs it. Owns the clocks."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from importlib.metadata import version

from services.fetcher.attempt import Clock, FeedReader
from services.fetcher.client import ClientLimits, FeedClient
from services.fetcher.handler import FetchFeeds
from services.fetcher.scoreboard import Scoreboard
from services.fetcher.settings import FetcherSettings
from services.fetcher.verdict import RetryRules
from shared.consumer import Consumer
from shared.messages import FetchFeed
from shared.rabbitmq import RabbitMQ
from shared.service import run_service
from shared.telemetry import Health
from shared.waiting import pause

TIDY_SECONDS = 60.0
"""How often the scoreboard drops groups of which nothing matters any more."""


async def serve(settings: FetcherSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    topology = settings.topology()
    clock = Clock(now=lambda: datetime.now(UTC), monotonic=time.monotonic)
    scoreboard = Scoreboard(settings.limits())
    client = make_client(settings)
    handler = FetchFeeds(
        FeedReader(client, clock, max_entries=settings.max_entries),
        scoreboard,
        topology.fetcher,
        rules=RetryRules(
            max_retries=settings.max_retries,
            retry_delay_seconds=settings.retry_delay_seconds,
            claim_seconds=settings.claim_seconds,
        ),
        clock=clock,
        threads=min(settings.fetch_threads, settings.max_active),
        max_hold_seconds=settings.fast_delay_seconds,
        stopping=stop,
    )
    consumer = Consumer(
        RabbitMQ(str(settings.amqp_url), name="feedmill fetcher", max_message_bytes=settings.max_message_bytes),
        topology,
        topology.fetcher,
        FetchFeed,
        handler,
        prefetch=settings.fetcher_prefetch,
        failures=settings.message_retries,
    )
    health.add_check("broker", consumer.check)
    tidying = asyncio.create_task(_tidy(scoreboard))
    try:
        await consumer.run(stop)
    finally:
        tidying.cancel()
        handler.close()
        client.close()


def make_client(settings: FetcherSettings) -> FeedClient:
    """Return the HTTP client that these settings describe."""
    contact = f" (+{settings.contact_url})" if settings.contact_url else ""
    return FeedClient(
        ClientLimits(
            deadline_seconds=settings.fetch_deadline_seconds,
            connect_seconds=settings.connect_timeout_seconds,
            read_seconds=settings.read_timeout_seconds,
            max_body_bytes=settings.max_body_bytes,
        ),
        user_agent=f"feedmill/{version('feedmill')}{contact}",
        allowed=settings.allowed(),
    )


async def _tidy(scoreboard: Scoreboard) -> None:
    while True:
        await pause(TIDY_SECONDS)
        scoreboard.forget_idle(time.monotonic(), idle_seconds=TIDY_SECONDS)


if __name__ == "__main__":
    run_service("fetcher", FetcherSettings, serve)
