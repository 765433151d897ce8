"""What takes part in a run, put together: the fetcher's handler, claims, outlet, receipts, and the loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence

from local.addresses import Addresses
from services.admin.registry import connect
from services.batch.claims import Claims
from services.batch.outlet import Outlet
from services.batch.receipts import Receipts
from services.batch.run import STAGE, Pauses, Run
from services.batch.tally import Tally
from services.batch.window import Window, share_of
from services.fetcher.__main__ import fetching
from services.fetcher.attempt import Clock
from services.fetcher.backpressure import Backpressure
from services.fetcher.outcomes import RetryRules
from services.fetcher.settings import FetcherSettings
from services.scheduler.settings import SchedulerSettings
from shared.background import beside
from shared.broker.consumer import DRAIN_SECONDS
from shared.broker.outgoing import Outgoing, encode_outgoing
from shared.broker.rabbitmq import RabbitMQ
from shared.clock import ServerClock
from shared.database.postgres import Database
from shared.errors import Unavailable
from shared.observability.telemetry import Health
from shared.waiting import keep_trying
from shared.wire.messages import FeedFetched, FetchFeed

log = logging.getLogger(__name__)

RETRIES = 1
"""Of a soft error, at the end of the run; unless FEEDMILL_MAX_RETRIES forbids it."""

CONNECTIONS = 3
"""To the database: the claim at hand, the look at what is written, and one to spare."""

RELEASE_SECONDS = 30.0
"""How long a database that is away is waited for, to give claims back."""


class Crew:
    """See the module.

    Args:
        is_awaited: the run waits for the writer, and tells how many articles were new.
    """

    def __init__(
        self, addresses: Addresses, fetcher: FetcherSettings, scheduler: SchedulerSettings, *, is_awaited: bool
    ) -> None:
        self._settings = fetcher
        self._database_url = addresses.database_url
        self._database = Database(
            addresses.database_url,
            size=CONNECTIONS,
            prepared=scheduler.prepared_statements,
            statement_seconds=scheduler.statement_seconds,
        )
        self._topology = fetcher.topology()
        self._broker = RabbitMQ(addresses.amqp_url, name="feedmill batch", max_message_bytes=fetcher.max_message_bytes)
        self._outlet = Outlet(self._broker, self._topology)
        self._clock = ServerClock()
        self._claims = Claims(self._database, self._clock, batch=scheduler.claim_batch, seconds=scheduler.claim_seconds)
        self.tally = Tally()
        self._receipts = Receipts(self._database, self.tally) if is_awaited else None

    def look_at_database(self) -> None:
        """Check that the database can be used at all.

        Raises:
            Unavailable: it can't, in one sentence.
        """
        with connect(self._database_url):
            pass

    async def run(self, stop: asyncio.Event, hurry: asyncio.Event, health: Health) -> None:
        """Run until all is done or `stop`; then wait for the writer, until `hurry`.

        Raises:
            Unavailable: a server can't be used from the beginning.
            ConfigurationError: the topology does not fit what stands in the broker.
        """
        health.add_check("broker", self._outlet.check)
        health.add_check("database", self._database.check)
        async with self._database.open():
            await self._database.require_schema()
            async with self._broker.connect(self._topology) as session:
                if not self._receipts and not await session.count_consumers(self._topology.writer.queue):
                    log.warning("no writer runs: results wait in the queue until one does")
            async with self._outlet.open(stop):
                await self._fetch(stop)
                if self._receipts:
                    await self._receipts.wait_written(hurry)

    async def _fetch(self, stop: asyncio.Event) -> None:
        settings, pause_seconds = self._settings, self._settings.fast_delay_seconds
        rules = RetryRules(
            max_retries=min(settings.max_retries, RETRIES),
            retry_delay_seconds=pause_seconds,
            claim_seconds=settings.claim_seconds,
        )
        limits = settings.limits()
        window = Window(settings.fetcher_prefetch, lambda group: share_of(limits, group))
        pauses = Pauses(delay=pause_seconds, drain=settings.longest_fetch_seconds() + DRAIN_SECONDS)
        clock = Clock(now=self._clock.now, monotonic=time.monotonic)
        with fetching(settings, STAGE, rules, clock=clock) as room:
            run = Run(self._claims, room.handler, self._publish, self._release, window, room.valve, pauses, self.tally)
            backpressure = Backpressure(
                self._topology.writer.queue, high_water=settings.writer_high_water, valve=room.valve
            )
            over = asyncio.Event()
            watching = [self._receipts.watch()] if self._receipts else []
            async with beside(
                over,
                room.turns.stop_when(stop),
                room.watch.watch(),
                backpressure.watch(lambda: self._outlet.session, over),
                *watching,
            ):
                await run.run(stop)

    async def _publish(self, item: Outgoing, until: asyncio.Event) -> None:
        await self._outlet.publish(encode_outgoing(item), until=until)
        if self._receipts and isinstance(item.message, FeedFetched):
            self._receipts.note(item.message)

    async def _release(self, jobs: Sequence[FetchFeed]) -> None:
        given_up = asyncio.Event()
        giving_up = asyncio.get_running_loop().call_later(RELEASE_SECONDS, given_up.set)
        try:
            await keep_trying(lambda: self._claims.release(jobs), what="giving claims back", until=(given_up,))
            self.tally.given_back += len(jobs)
        except Unavailable as error:
            log.warning("could not give %d claims back, they will run out by themselves: %s", len(jobs), error)
        finally:
            giving_up.cancel()
