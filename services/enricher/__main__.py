"""`python -m services.enricher`: puts the enricher together and runs it."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from prometheus_client import Gauge

from services.enricher.handler import EnrichResults
from services.enricher.parts import Parts
from services.enricher.settings import EnricherSettings
from shared.background import beside
from shared.broker.consumer import DRAIN_SECONDS, Batching, Consumer, count_entries
from shared.broker.rabbitmq import RabbitMQ
from shared.observability.telemetry import Health
from shared.service import run_service
from shared.waiting import pause
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

MISSING = Gauge("feedmill_enricher_part_missing", "1 if this part is asked for and not installed.", ["part"])

TOGETHER = Batching(size=20, linger_seconds=0.05, weigh=count_entries, concurrency=2)
"""Results are computed, published and acknowledged together: of fifty a second, each costs us three quarters of what it
did alone; of a full queue, six tenths, and the broker half. To wait longer would delay articles."""

STUCK_SECONDS = 60.0
"""CPU time of a text that ends the process: the broker hands it out again, and in the end past us."""

LOOK_SECONDS = 5.0


async def serve(settings: EnricherSettings, stop: asyncio.Event, health: Health) -> None:
    """Consume until `stop`."""
    parts = await load(settings.parts, stop)
    if parts is None:
        return
    gc.freeze()  # the models, too
    report_missing(parts, health)
    topology = settings.topology()
    stage = topology.stage("enricher")
    broker = RabbitMQ(str(settings.amqp_url), name="feedmill enricher", max_message_bytes=settings.max_message_bytes)
    with ThreadPoolExecutor(1, thread_name_prefix="enrich") as thread:
        handler = EnrichResults(stage, parts, thread, most_bytes=lambda: broker.max_message_bytes)
        consumer = Consumer(
            broker,
            topology,
            stage,
            FeedFetched,
            handler,
            prefetch=settings.enricher_prefetch,
            failures=settings.message_retries,
            batching=TOGETHER,
        )
        health.add_check("broker", consumer.check)
        async with beside(stop, end_if_stuck(handler, stop)):
            await consumer.run(stop)
    faulthandler.cancel_dump_traceback_later()
    signal.setitimer(signal.ITIMER_PROF, 0)


async def load(parts: Callable[[], Parts], stop: asyncio.Event) -> Parts | None:
    """Return what `parts()` loads, which takes seconds; None as soon as `stop` is set.

    On a thread that the end of the process does not wait for.
    """
    loading: Future[Parts] = Future()

    def run() -> None:
        loading.set_running_or_notify_cancel()
        try:
            loading.set_result(parts())
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            loading.set_exception(error)

    threading.Thread(target=run, name="load", daemon=True).start()
    loaded = asyncio.wrap_future(loading)
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((loaded, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if loaded.done():
        return loaded.result()
    loaded.cancel()
    return None


def report_missing(parts: Parts, health: Health) -> None:
    """Say what is not installed, in log, metrics and on the health page."""
    for name, said in parts.missing.items():
        log.warning("%s: %s", name, said)
        MISSING.labels(name).set(1)
        health.add_warning(name, lambda said=said: said)  # type: ignore[misc]


async def end_if_stuck(handler: EnrichResults, stop: asyncio.Event) -> None:
    """End the process, with a traceback, if a text keeps it busy for `STUCK_SECONDS`, or a stop waits for one.

    A timer of the system, since a regular expression without end lets no other thread run. It counts CPU time: a
    process that was stopped for a while, or gets little of a busy machine, is not stuck.
    """
    faulthandler.register(signal.SIGPROF, chain=True)  # then the signal does what it does without us: it ends us
    while not stop.is_set():
        if handler.busy_seconds() < STUCK_SECONDS:
            signal.setitimer(signal.ITIMER_PROF, STUCK_SECONDS + LOOK_SECONDS)
        await pause(LOOK_SECONDS, stop)
    faulthandler.dump_traceback_later(DRAIN_SECONDS + LOOK_SECONDS, exit=True)


if __name__ == "__main__":
    run_service("enricher", EnricherSettings, serve)
