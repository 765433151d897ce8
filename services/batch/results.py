"""The results of a run: published to the writer's queue, then looked for in the fetch log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice
from uuid import UUID

from services.batch.summary import Summary
from shared.broker.port import Broker, Publication, Session
from shared.broker.topology import Topology
from shared.database.postgres import Database
from shared.errors import BrokerUnavailable, Unavailable
from shared.waiting import keep_trying, pause, until_any
from shared.wire.results import FeedFetched

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
"""Between two looks at the fetch log."""
MOST_AT_ONCE = 2000
"""The most results that one statement asks for, the oldest first."""

PATIENCE_SECONDS = 30.0
"""The run stops waiting when nothing was written for so long: a feed may have been removed meanwhile, or a result may
be in the writer's retry or dead queue."""


class ResultPublisher:
    """Publishes results in a session that is opened anew whenever it is lost."""

    def __init__(self, broker: Broker, topology: Topology) -> None:
        self._broker = broker
        self._topology = topology
        self._connected = asyncio.Event()
        self._closing = asyncio.Event()
        self.session: Session | None = None
        """The current session, if any."""

    @asynccontextmanager
    async def open(self, stop: asyncio.Event) -> AsyncIterator[None]:
        """Keep a session for the length of the block.

        Raises:
            ConfigurationError: the topology no longer fits the broker's queues; `stop` was set.
        """
        connecting = asyncio.create_task(self._keep_connected())
        connecting.add_done_callback(lambda _: stop.set())
        try:
            yield
        finally:
            self._closing.set()  # not cancelled: the AMQP library may swallow that
            await asyncio.wait({connecting})
        connecting.result()

    def check(self) -> str | None:
        """Return what is wrong, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session and not self.session.lost.is_set() else "no session with the broker"

    async def publish(self, publication: Publication, *, until: asyncio.Event) -> None:
        """Publish, however long the broker is away; return when it has confirmed.

        Raises:
            BrokerUnavailable: the broker was away when `until` was set.
            MessageTooLarge: the broker does not take bodies of this size.
        """
        await keep_trying(
            lambda: self._publish(publication, until),
            what=f"publishing to {publication.routing_key}",
            until=(until, self._closing),
        )

    async def _publish(self, publication: Publication, until: asyncio.Event) -> None:
        await until_any(self._connected, self._closing, until)
        if self.session is None:
            raise BrokerUnavailable("no session with the broker")
        await self.session.publish(publication)

    async def _keep_connected(self) -> None:
        while not self._closing.is_set():
            try:
                await keep_trying(self._connect, what="connecting to the broker", until=(self._closing,))
            except Unavailable as error:
                log.info("ended while the broker was away: %s", error)

    async def _connect(self) -> None:
        async with self._broker.connect(self._topology) as session:
            self.session = session
            self._connected.set()
            try:
                await until_any(session.lost, self._closing)
            finally:
                self.session = None
                self._connected.clear()
        if not self._closing.is_set():
            log.warning("the session with the broker was lost, connecting anew")


class UnwrittenResults:
    """The published results that the fetch log does not show yet. Counts new articles when it does."""

    def __init__(self, database: Database, summary: Summary) -> None:
        self._database = database
        self._summary = summary
        self._results: dict[UUID, None] = {}
        summary.new_articles = summary.unwritten = 0

    def add(self, fetched: FeedFetched) -> None:
        """Add a result that was published."""
        self._results[fetched.result_id] = None

    async def watch(self) -> None:
        """Look until cancelled, so that the results here are no more than the writer's backlog."""
        while True:
            await self._look()
            await pause(LOOK_SECONDS)

    async def wait(self, stop: asyncio.Event) -> None:
        """Wait until all are written, or until `stop`, or until nothing was written for a while."""
        loop = asyncio.get_running_loop()
        moved_at = loop.time()
        while self._results and not stop.is_set() and loop.time() - moved_at < PATIENCE_SECONDS:
            if await self._look():
                moved_at = loop.time()
            elif self._results:
                await pause(LOOK_SECONDS, stop)
        self._summary.unwritten = len(self._results)
        if self._results:
            log.warning("%d results are not written yet", len(self._results))

    async def _look(self) -> bool:
        """Remove written results; return whether there were any, or the database is away."""
        if not self._results:
            return False
        try:
            async with self._database.transaction() as connection:
                cursor = await connection.execute(
                    "SELECT result_id, items_new FROM feed_fetch_log WHERE result_id = ANY(%s)",
                    [list(islice(self._results, MOST_AT_ONCE))],
                )
                rows = await cursor.fetchall()
        except Unavailable as error:
            log.warning("could not look at what is written: %s", error)
            await pause(LOOK_SECONDS)
            return True
        for row in rows:
            if row["result_id"] in self._results:
                del self._results[row["result_id"]]
                assert self._summary.new_articles is not None
                self._summary.new_articles += row["items_new"]
        return bool(rows)
