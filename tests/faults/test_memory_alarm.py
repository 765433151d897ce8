"""A broker under a memory alarm takes nothing from publishers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import shared.broker.publisher
from local.servers import Servers
from shared.broker.port import Broker, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.errors import BrokerUnavailable, Unconfirmed
from tests.contract.test_broker_conformance import TOPOLOGY, publication, until_ready
from tests.e2e.broker_control import BrokerControl
from tests.fakes.memory_broker import MemoryBroker


async def test_a_publish_without_a_confirm_is_sent_once_whoever_asks_and_whenever(
    servers: Servers, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared.broker.publisher, "CONFIRM_TIMEOUT_SECONDS", 0.2)
    control = BrokerControl(servers)
    same = publication()
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        if isinstance(broker, MemoryBroker):
            broker.confirm_seconds = 0.2
            broker.taking.clear()
            await give_up(session, same)
            broker.taking.set()
        else:
            with control.memory_alarm():
                await give_up(session, same)
        await until_ready(other, "fetcher.00", 1)  # the confirm is here by now, and nobody waited for it
        await session.publish(same)
        await other.publish(publication(key="feed.fetched.v1"))
        assert await other.count_ready("fetcher.00") == 1


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_an_alarm_is_found_by_its_name_until_it_is_over(servers: Servers, broker: Broker, resource: str) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        assert await session.find_alarm() is None
        with raised(BrokerControl(servers), broker, resource):
            for one in (session, session, other):
                async with asyncio.timeout(30):
                    while not (found := await one.find_alarm()):
                        pass
                assert found == (f"low on {resource}" if isinstance(broker, RabbitMQ) else "low on memory")
            assert await session.count_ready("fetcher.00") == 0
        async with asyncio.timeout(30):
            while await session.find_alarm():
                await asyncio.sleep(0.01)
        await session.publish(publication())


@contextmanager
def raised(control: BrokerControl, broker: Broker, resource: str) -> Iterator[None]:
    if isinstance(broker, MemoryBroker):
        broker.taking.clear()
        yield
        broker.taking.set()
    else:
        with control.memory_alarm() if resource == "memory" else control.disk_alarm():
            yield


async def give_up(session: Session, same: object) -> None:
    for _ in range(2):
        with pytest.raises(Unconfirmed):
            await session.publish(same)  # type: ignore[arg-type]


async def test_what_a_blocked_broker_was_not_sent_is_known_not_to_be_there(
    amqp_url: str, servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared.broker.publisher, "CONFIRM_TIMEOUT_SECONDS", 0.5)
    control, broker = BrokerControl(servers), RabbitMQ(amqp_url, name="feedmill fetcher", max_message_bytes=10**6)
    with control.memory_alarm():
        async with broker.connect(TOPOLOGY) as session:
            with pytest.raises(Unconfirmed):
                await session.publish(publication(b"in the socket"))
            late = asyncio.ensure_future(session.publish(publication(b"held back")))
            await asyncio.sleep(0.1)
            assert control.close_connections(amqp_url, kill=True) >= 2
            with pytest.raises(BrokerUnavailable) as error:
                await late
            assert not isinstance(error.value, Unconfirmed)
