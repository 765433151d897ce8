"""Faults that a session survives (refused locks, late confirms), and faults that end it (a broker that hangs)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import NoneType
from urllib.parse import urlsplit

import pytest

import shared.broker.rabbitmq
import shared.broker.session
from shared.broker.port import Broker, Delivery
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import FETCHERS
from shared.errors import BrokerUnavailable, Unconfirmed
from tests.contract.test_broker_cancelled import CALLS
from tests.contract.test_broker_conformance import TOPOLOGY, publication, until


async def test_locks_refused_again_and_again_cost_nothing_while_acknowledgements_pour_out(broker: Broker) -> None:
    messages, rounds = 400, 40
    async with broker.connect(TOPOLOGY) as owner, broker.connect(TOPOLOGY) as session:
        for n in range(3):
            assert await owner.lock(f"fetcher.{n:02}.owner")
        acked = 0
        pending: set[asyncio.Task[None]] = set()

        async def work(delivery: Delivery) -> None:
            nonlocal acked
            await session.requeue(delivery) if acked % 2 else await session.ack(delivery)
            acked += 1

        def deliver(delivery: Delivery) -> None:
            task = asyncio.ensure_future(work(delivery))
            pending.add(task)
            task.add_done_callback(pending.discard)

        await session.consume("fetcher.00", prefetch=200, deliver=deliver)
        feeding = asyncio.gather(*(session.publish(publication()) for _ in range(messages)))
        for _ in range(rounds):
            refused = await asyncio.gather(
                *(session.lock(f"fetcher.{n:02}.owner") for n in range(3)),
                session.count_ready("nobody"),
                session.is_locked("fetcher.01.owner"),
                session.is_locked("fetcher.99.owner"),
            )
            assert refused == [False, False, False, None, True, False]
        await feeding
        await until(lambda: acked >= messages)
        assert not session.lost.is_set()
        assert await session.lock("fetcher.05.owner")
        assert await session.is_locked("fetcher.05.owner")
        await session.stop_consuming()
        await asyncio.gather(*pending)


async def test_a_listener_has_its_lock_for_as_long_as_its_session_stands(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as other:
        async with broker.connect(TOPOLOGY) as one:
            assert await one.listen(FETCHERS, lambda _: None, name="fetcher.alive.x")
            assert await other.is_locked("fetcher.alive.x")
            assert await one.is_locked("fetcher.alive.x")
            assert not await other.listen(FETCHERS, lambda _: None, name="fetcher.alive.x")
        async with asyncio.timeout(30):
            while await other.is_locked("fetcher.alive.x"):
                await asyncio.sleep(0.02)
        assert not other.lost.is_set()


class Relay:
    """A proxy in front of the broker that forwards no byte while it hangs."""

    def __init__(self, amqp_url: str) -> None:
        self._behind = urlsplit(amqp_url)
        self._running = asyncio.Event()
        self._running.set()
        self._copies: set[asyncio.Task[None]] = set()
        self.url = ""

    def hang(self) -> None:
        self._running.clear()

    @asynccontextmanager
    async def standing(self) -> AsyncIterator[Relay]:
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        user = self._behind.netloc.rpartition("@")[0]
        self.url = f"amqp://{user}@127.0.0.1:{port}{self._behind.path}?heartbeat=1"
        try:
            yield self
        finally:
            server.close()
            for copy in self._copies:
                copy.cancel()
            await asyncio.gather(*self._copies, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(self._behind.hostname, self._behind.port)
        for source, target in ((reader, there[1]), (there[0], writer)):
            copy = asyncio.ensure_future(self._copy(source, target))
            self._copies.add(copy)

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._running.wait()
                target.write(data)
        finally:
            target.close()


async def test_a_broker_that_hangs_is_away_for_every_call_connect_and_close(
    amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Missed heartbeats make the library cancel calls; no caller may see that cancellation."""
    monkeypatch.setattr(shared.broker.rabbitmq, "CONNECT_TIMEOUT_SECONDS", 1.0)
    async with Relay(amqp_url).standing() as relay:
        broker = RabbitMQ(relay.url, name="conformance", max_message_bytes=10**6)
        async with broker.connect(TOPOLOGY) as session:
            await session.publish(publication())
            await session.consume("fetcher.00", prefetch=1, deliver=lambda _: None)
            relay.hang()
            calls = [call(session) for call in CALLS.values() for _ in range(2)]
            with pytest.raises(BrokerUnavailable):
                async with broker.connect(TOPOLOGY):
                    pass
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(error) for error in found} == {BrokerUnavailable, Unconfirmed, NoneType}, found
            assert found.count(None) == 1, "the second of two calls that end all consumers has nothing to do"
            assert session.lost.is_set()
        hanging = Relay(amqp_url)
        async with hanging.standing():
            broker = RabbitMQ(hanging.url, name="conformance", max_message_bytes=10**6)
            async with broker.connect(TOPOLOGY) as session:
                hanging.hang()  # closing the session must not wait for it


async def test_a_call_without_an_answer_loses_the_session(amqp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared.broker.session, "CALL_SECONDS", 0.3)
    async with Relay(amqp_url).standing() as relay:
        broker = RabbitMQ(relay.url, name="conformance", max_message_bytes=10**6)
        async with broker.connect(None) as session:
            relay.hang()
            with pytest.raises(BrokerUnavailable):
                await session.count_ready("nobody")
            assert session.lost.is_set()
