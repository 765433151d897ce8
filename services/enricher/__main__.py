"""`python -m services.enricher`: puts the enricher together and runs it."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from services.enricher.handler import EnrichResults
from services.enricher.settings import EnricherSettings
from shared.broker.consumer import Batching, Consumer
from shared.broker.rabbitmq import RabbitMQ
from shared.observability.telemetry import Health
from shared.service import run_service
from shared.wire.results import FeedFetched


async def serve(settings: EnricherSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    topology = settings.topology()
    stage = topology.stage("enricher")
    with ThreadPoolExecutor(1, thread_name_prefix="enrich") as thread:
        consumer = Consumer(
            RabbitMQ(str(settings.amqp_url), name="feedmill enricher", max_message_bytes=settings.max_message_bytes),
            topology,
            stage,
            FeedFetched,
            EnrichResults(stage, settings.parts(), thread),
            prefetch=settings.enricher_prefetch,
            failures=settings.message_retries,
            batching=Batching(concurrency=2),  # one is published while the next is computed
        )
        health.add_check("broker", consumer.check)
        await consumer.run(stop)


if __name__ == "__main__":
    run_service("enricher", EnricherSettings, serve)
