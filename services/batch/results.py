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
LOOK_AT = 2000
"""Results that are asked for at a time, the oldest first."""

PATIENCE_SECONDS = 30.0
"""For so long nothing may be written while the run waits for the writer: a feed may have been removed meanwhile, or a
result be in the writer's retry or dead queue."""


class ResultPublisher:
    """See the module."""

    def __init__(self, broker: Broker, topology: Topology) -> None:
        self._broker = broker
        self._topology = topology
        self._standing = asyncio.Event()
        self._closing = asyncio.Event()
        self.session: Session | None = None
        """The session that stands at the moment, if any."""

    @asynccontextmanager
    async def open(self, stop: asyncio.Event) -> AsyncIterator[None]:
        """Keep a session for the length of the block.

        Raises:
            ConfigurationError: the topology no longer fits what stands in the broker; `stop` was set.
        """
        keeping = asyncio.create_task(self._keep())
        keeping.add_done_callback(lambda _: stop.set())
        try:
            yield
        finally:
            self._closing.set()  # told rather than cancelled: the AMQP library may take that for its own
            await asyncio.wait({keeping})
        keeping.result()

    def check(self) -> str | None:
        """Return what is wrong, if anything (a `shared.observability.telemetry.Check`)."""
        return None if self.session and not self.session.lost.is_set() else "no session with the broker"

    async def publish(self, publication: Publication, *, until: asyncio.Event) -> None:
        """Return once it is confirmed, however long the broker is away, but for `until`.

        Raises:
            BrokerUnavailable: it was not to be had before `until`.
            MessageTooLarge: the broker does not take bodies of this size.
        """
        await keep_trying(
            lambda: self._publish(publication, until),
            what=f"publishing to {publication.routing_key}",
            until=(until, self._closing),
        )

    async def _publish(self, publication: Publication, until: asyncio.Event) -> None:
        await until_any(self._standing, self._closing, until)
        if self.session is None:
            raise BrokerUnavailable("no session with the broker")
        await self.session.publish(publication)

    async def _keep(self) -> None:
        while not self._closing.is_set():
            try:
                await keep_trying(self._stand, what="connecting to the broker", until=(self._closing,))
            except Unavailable as error:
                log.info("ended while the broker was away: %s", error)

    async def _stand(self) -> None:
        async with self._broker.connect(self._topology) as session:
            self.session = session
            self._standing.set()
            try:
                await until_any(session.lost, self._closing)
            finally:
                self.session = None
                self._standing.clear()
        if not self._closing.is_set():
            log.warning("the session with the broker was lost, connecting anew")


class WrittenResults:
    """See the module. Counts the articles that were new into the summary."""

    def __init__(self, database: Database, summary: Summary) -> None:
        self._database = database
        self._summary = summary
        self._open: dict[UUID, None] = {}
        summary.new_articles = summary.unwritten = 0

    def note(self, fetched: FeedFetched) -> None:
        """Wait for the row of a result that was passed on."""
        self._open[fetched.result_id] = None

    async def watch(self) -> None:
        """Look until cancelled, so that what is open stays as short as the writer's backlog."""
        while True:
            await self._look()
            await pause(LOOK_SECONDS)

    async def wait_written(self, stop: asyncio.Event) -> None:
        """Wait until all is written, or until `stop`, or until nothing moves any more."""
        loop = asyncio.get_running_loop()
        moved_at = loop.time()
        while self._open and not stop.is_set() and loop.time() - moved_at < PATIENCE_SECONDS:
            if await self._look():
                moved_at = loop.time()
            elif self._open:
                await pause(LOOK_SECONDS, stop)
        self._summary.unwritten = len(self._open)
        if self._open:
            log.warning("%d results are not written yet", len(self._open))

    async def _look(self) -> bool:
        """Return whether something was found, or could not be looked for."""
        if not self._open:
            return False
        try:
            async with self._database.transaction() as connection:
                cursor = await connection.execute(
                    "SELECT result_id, items_new FROM feed_fetch_log WHERE result_id = ANY(%s)",
                    [list(islice(self._open, LOOK_AT))],
                )
                rows = await cursor.fetchall()
        except Unavailable as error:
            log.warning("could not look at what is written: %s", error)
            await pause(LOOK_SECONDS)
            return True
        for row in rows:
            if row["result_id"] in self._open:
                del self._open[row["result_id"]]
                assert self._summary.new_articles is not None
                self._summary.new_articles += row["items_new"]
        return bool(rows)
