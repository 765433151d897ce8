"""The broker's part in a run: results go out, over a session that is made anew whenever it is lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from shared.broker.port import Broker, Publication, Session
from shared.broker.topology import Topology
from shared.errors import BrokerUnavailable, Unavailable
from shared.waiting import keep_trying, until_any

log = logging.getLogger(__name__)


class Outlet:
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
