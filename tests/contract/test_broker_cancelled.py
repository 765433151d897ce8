"""Callers that are cancelled in the middle of a call: the call goes on to its end, and the session stays sound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from shared.broker.port import Broker, Delivery, Session
from shared.broker.topology import FETCHERS
from tests.contract.test_broker_conformance import TOPOLOGY, Inbox, publication, until_ready
from tests.fakes.memory_broker import MemoryBroker

CUTS = 12
"""A call is cancelled after each of so many different numbers of event loop turns."""

CALLS: dict[str, Callable[[Session], Awaitable[object]]] = {
    "consume": lambda session: session.consume("writer", prefetch=3, deliver=lambda _: None),
    "stop": lambda session: session.stop_consuming(),
    "publish": lambda session: session.publish(publication(key="feed.fetched.v1")),
    "count": lambda session: session.count_ready("nobody"),
    "lock": lambda session: session.lock("fetcher.01.owner"),
    "alarm": lambda session: session.find_alarm(),
    "look": lambda session: session.is_locked("fetcher.02.owner"),
}


async def cancelled_after(call: Callable[[Session], Awaitable[object]], session: Session, turns: int) -> None:
    """Begin a call, and cancel its caller after so many iterations of the event loop."""
    caller = asyncio.ensure_future(call(session))
    for _ in range(turns):
        await asyncio.sleep(0.0002 if turns % 2 else 0)
    caller.cancel()
    await asyncio.gather(caller, return_exceptions=True)


@pytest.mark.parametrize("name", CALLS)
async def test_a_cancelled_call_harms_no_session(broker: Broker, name: str) -> None:
    async with broker.connect(TOPOLOGY) as session:
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await session.publish(publication())
        (held,) = await inbox.wait_for(1)
        for turns in range(CUTS):
            await cancelled_after(CALLS[name], session, turns)
        await session.stop_consuming()
        await session.ack(held)
        await session.publish(publication(b"after"))
        assert not session.lost.is_set()
        await until_ready(session, "fetcher.00", 1)


async def test_a_consumer_whose_beginning_was_cancelled_can_be_ended(broker: Broker) -> None:
    got: list[Delivery] = []
    async with broker.connect(TOPOLOGY) as session:
        for turns in range(CUTS):
            await cancelled_after(
                lambda session: session.consume("fetcher.00", prefetch=3, deliver=got.append), session, turns
            )
            await session.stop_consuming()
        await session.publish(publication())
        await until_ready(session, "fetcher.00", 1)
        assert not got


async def test_of_a_fragile_broker_a_cancelled_call_costs_the_session() -> None:
    """The fake shows the fault that the adapter protects from."""
    broker = MemoryBroker(fragile=True, turns=2)
    for name, call in CALLS.items():
        async with broker.connect(TOPOLOGY) as session:
            await cancelled_after(call, session, 2)
            assert session.lost.is_set(), name


async def cancelled_in_the_middle(call: Awaitable[object]) -> None:
    """Begin a call, and cancel its caller when the broker has the request and has not answered."""
    caller = asyncio.ensure_future(call)
    for _ in range(3):
        await asyncio.sleep(0)
    assert not caller.done(), "it was to be cancelled in the middle"
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def until_found(look: Callable[[], Awaitable[object]], expected: object) -> None:
    async with asyncio.timeout(30):
        while await look() != expected:
            await asyncio.sleep(0.01)


async def test_a_publish_that_is_cancelled_in_the_middle_arrives_once_also_if_it_is_made_again(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        same = publication()
        await cancelled_in_the_middle(session.publish(same))
        await session.publish(same)
        await cancelled_in_the_middle(session.publish(publication()))
        await until_ready(session, "fetcher.00", 2)


async def test_a_consume_that_is_cancelled_in_the_middle_delivers_and_can_be_ended(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        inbox = Inbox()
        await cancelled_in_the_middle(session.consume("fetcher.00", prefetch=2, deliver=inbox))
        await until_found(lambda: other.count_consumers("fetcher.00"), 1)
        for _ in range(3):
            await other.publish(publication())
        await inbox.wait_for(2)
        await cancelled_in_the_middle(session.stop_consuming("fetcher.00"))
        await asyncio.sleep(0.05)
        for delivery in inbox.deliveries[:]:
            await session.ack(delivery)
        await until_found(lambda: other.count_consumers("fetcher.00"), 0)
        await until_ready(other, "fetcher.00", 1)
        assert len(inbox.deliveries) == 2
        assert not session.lost.is_set()


async def test_a_lock_that_is_cancelled_in_the_middle_is_taken_and_so_is_its_end(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        await cancelled_in_the_middle(session.lock("fetcher.00.owner"))
        await until_found(lambda: other.is_locked("fetcher.00.owner"), True)
        assert not await other.lock("fetcher.00.owner")
        assert await session.lock("fetcher.00.owner"), "it is this session's"
        await cancelled_in_the_middle(session.unlock("fetcher.00.owner"))
        await until_found(lambda: other.lock("fetcher.00.owner"), True)


async def test_a_question_that_is_cancelled_in_the_middle_leaves_the_next_one_its_own_answer(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication())
        await until_ready(session, "fetcher.00", 1)
        for question in (session.count_ready("nobody"), session.is_locked("fetcher.07.owner")):
            await cancelled_in_the_middle(question)
            assert await session.count_ready("fetcher.00") == 1
            assert not await session.is_locked("fetcher.08.owner")


async def test_a_listener_that_is_cancelled_in_the_middle_has_its_lock_or_can_take_it(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        await cancelled_in_the_middle(session.listen(FETCHERS, lambda _: None, name="fetcher.alive.x"))
        await until_found(lambda: other.is_locked("fetcher.alive.x"), True)
        assert not session.lost.is_set()
