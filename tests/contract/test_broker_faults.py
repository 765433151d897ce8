"""What must cost a session nothing: calls that are cut off, locks that are refused, confirms that come late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import NoneType
from urllib.parse import urlsplit

import pytest

import shared.broker.rabbitmq
from shared.broker.port import Broker, Delivery, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import FETCHERS
from shared.errors import BrokerUnavailable, Unconfirmed
from tests.contract.test_broker_conformance import TOPOLOGY, Inbox, publication, settle_down, until
from tests.fakes.memory_broker import MemoryBroker

CUTS = 12
"""A call is cut off after so many different turns of the event loop."""

CALLS: dict[str, Callable[[Session], Awaitable[object]]] = {
    "consume": lambda session: session.consume("writer", prefetch=3, deliver=lambda _: None),
    "stop": lambda session: session.stop_consuming(),
    "publish": lambda session: session.publish(publication(key="feed.fetched.v1")),
    "count": lambda session: session.count_ready("nobody"),
    "lock": lambda session: session.lock("fetcher.01.owner"),
    "look": lambda session: session.is_locked("fetcher.02.owner"),
}


async def cut_off(call: Callable[[Session], Awaitable[object]], session: Session, turns: int) -> None:
    """Begin a call, and cancel whoever waits for it after so many turns of the event loop."""
    caller = asyncio.ensure_future(call(session))
    for _ in range(turns):
        await asyncio.sleep(0.0002 if turns % 2 else 0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_is_cut_off_harms_no_session(broker: Broker, name: str) -> None:
    async with broker.connect(TOPOLOGY) as session:
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await session.publish(publication())
        (held,) = await inbox.wait_for(1)
        for turns in range(CUTS):
            await cut_off(CALLS[name], session, turns)
        await session.stop_consuming()
        await session.ack(held)
        await session.publish(publication(b"after"))
        assert not session.lost.is_set()
        await settle_down(session, "fetcher.00", 1)


async def test_a_consumer_whose_beginning_was_cut_off_can_be_ended(broker: Broker) -> None:
    got: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        for turns in range(CUTS):
            await cut_off(lambda session: session.consume("fetcher.00", prefetch=3, deliver=got.append), session, turns)
            await session.stop_consuming()
        await session.publish(publication())
        await settle_down(session, "fetcher.00", 1)
        assert not got


async def test_of_a_fragile_broker_a_call_that_is_cut_off_costs_the_session() -> None:
    """The fake can show what the adapter protects from."""
    broker = MemoryBroker(fragile=True, turns=2)
    for name, call in CALLS.items():
        async with broker.connect(TOPOLOGY) as session:
            await cut_off(call, session, 2)
            assert session.lost.is_set(), name


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


async def test_who_listens_is_known_by_its_lock_for_as_long_as_its_session_stands(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as other:
        async with broker.connect(TOPOLOGY) as one:
            assert await one.listen(FETCHERS, lambda _: None, name="fetcher.alive.x")
            assert await other.is_locked("fetcher.alive.x")
            assert await one.is_locked("fetcher.alive.x")
            assert not await other.listen(FETCHERS, lambda _: None, name="fetcher.alive.x")
        async with asyncio.timeout(5):
            while await other.is_locked("fetcher.alive.x"):
                await asyncio.sleep(0.02)
        assert not other.lost.is_set()


class Relay:
    """Stands before the broker, and hands on no byte while it hangs."""

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


async def test_a_broker_that_hangs_is_away_for_whoever_calls_connects_or_closes(
    amqp_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its missed heartbeats end no call with a cancellation that nobody asked for."""
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
            assert found.count(None) == 1, "of two that end all consumers one has nothing to do"
            assert session.lost.is_set()
        hanging = Relay(amqp_url)
        async with hanging.standing():
            broker = RabbitMQ(hanging.url, name="conformance", max_message_bytes=10**6)
            async with broker.connect(TOPOLOGY) as session:
                hanging.hang()  # and nobody knows when it is closed


async def test_a_call_without_an_answer_loses_the_session(amqp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared.broker.rabbitmq, "CALL_SECONDS", 0.3)
    async with Relay(amqp_url).standing() as relay:
        broker = RabbitMQ(relay.url, name="conformance", max_message_bytes=10**6)
        async with broker.connect(None) as session:
            relay.hang()
            with pytest.raises(BrokerUnavailable):
                await session.count_ready("nobody")
            assert session.lost.is_set()
