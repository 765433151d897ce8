"""What the consumer loop and the scheduler may expect of a broker. The fake and RabbitMQ pass the same suite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from shared.broker.port import Broker, Delivery, Publication, Session
from shared.broker.rabbitmq import RabbitMQ
from shared.broker.topology import EXCHANGE, build_topology
from shared.errors import BrokerUnavailable, MessageTooLarge, TopologyMismatch, Unroutable
from tests.contract.conftest import MOST_BYTES
from tests.fakes.memory_broker import MemoryBroker

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)


def publication(body: bytes = b"{}", key: str = "feed.fetch.00.v1", exchange: str = EXCHANGE) -> Publication:
    return Publication(
        routing_key=key, body=body, exchange=exchange, type="feed.fetch.v1", headers={"attempt": 3, "note": "hello"}
    )


class Inbox:
    """Collects deliveries."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []

    def __call__(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)

    async def wait_for(self, number: int) -> list[Delivery]:
        await until(lambda: len(self.deliveries) >= number)
        assert len(self.deliveries) == number
        return self.deliveries


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)


async def until_ready(session: Session, queue: str, ready: int) -> None:
    """Wait until the broker's count says so; RabbitMQ's is a moment behind."""
    async with asyncio.timeout(30):
        while await session.count_ready(queue) != ready:
            await asyncio.sleep(0.01)


async def test_a_message_arrives_as_it_was_sent(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        sent = publication(b'{"a": 1}')
        await session.publish(sent)
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        (got,) = await inbox.wait_for(1)
        assert (got.body, got.type, got.message_id) == (sent.body, sent.type, sent.message_id)
        assert (got.headers["attempt"], got.headers["note"]) == (3, "hello")
        assert (got.content_encoding, got.redelivered) == (None, False)


async def test_an_acknowledged_message_does_not_come_back(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication())
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await session.ack((await inbox.wait_for(1))[0])
    async with broker.connect(TOPOLOGY) as session:
        await until_ready(session, "fetcher.00", 0)


async def test_an_unsettled_message_comes_back_when_the_session_ends(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication(b"kept"))
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await inbox.wait_for(1)
    async with broker.connect(TOPOLOGY) as session:
        again = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=again)
        (got,) = await again.wait_for(1)
        assert (got.body, got.redelivered) == (b"kept", True)


async def test_a_requeued_message_is_delivered_again(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication())
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await session.requeue((await inbox.wait_for(1))[0])
        assert (await inbox.wait_for(2))[1].redelivered


async def test_without_an_alarm_none_is_found_and_nothing_is_left_behind(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        assert [await session.find_alarm(), await session.find_alarm()] == [None, None]
        await session.publish(publication())
        await until_ready(session, "fetcher.00", 1)
        ready = [await session.count_ready(queue.name) or 0 for queue in TOPOLOGY.queues]
        assert (sum(ready), session.lost.is_set()) == (1, False)


async def test_without_our_exchange_none_is_found_either(broker: Broker) -> None:
    async with broker.connect(None) as session:
        assert await session.find_alarm() is None
        assert await session.count_ready("fetcher.00") is None


async def test_a_rejected_message_is_moved_to_the_dead_queue_untouched(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication(b"poison"))
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await session.reject((await inbox.wait_for(1))[0])
        await until_ready(session, "fetcher.dead", 1)
        assert await session.count_ready("fetcher.00") == 0


async def test_a_publication_that_is_published_again_while_it_is_under_way_arrives_once(amqp_url: str) -> None:
    broker = RabbitMQ(amqp_url, name="conformance", max_message_bytes=MOST_BYTES)
    async with broker.connect(TOPOLOGY) as session:
        same = publication()
        await asyncio.gather(session.publish(same), session.publish(same))
        await session.publish(publication())
        await until_ready(session, "fetcher.00", 2)


async def test_no_more_than_the_prefetch_is_delivered(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        for _ in range(5):
            await session.publish(publication())
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=2, deliver=inbox)
        await until_ready(session, "fetcher.00", 3)
        first, _ = await inbox.wait_for(2)
        await session.ack(first)
        await inbox.wait_for(3)


async def test_after_stop_consuming_nothing_arrives_and_what_did_can_be_settled(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication())
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        (first,) = await inbox.wait_for(1)
        await session.stop_consuming()
        await session.publish(publication())
        await until_ready(session, "fetcher.00", 1)
        await session.ack(first)
        assert len(inbox.deliveries) == 1


async def test_a_message_requeued_after_stop_consuming_waits_for_the_next_consumer(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication(b"patient"))
        inbox, again = Inbox(), Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        (first,) = await inbox.wait_for(1)
        await session.stop_consuming()
        await session.requeue(first)
        await until_ready(session, "fetcher.00", 1)
        assert len(inbox.deliveries) == 1
        await session.consume("fetcher.00", prefetch=10, deliver=again)
        (second,) = await again.wait_for(1)
        assert (second.body, second.redelivered, len(inbox.deliveries)) == (b"patient", True, 1)


async def test_consuming_again_counts_its_prefetch_anew_whatever_an_earlier_consumer_holds(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        for n in range(10):
            await session.publish(publication(b"%d" % n))
        first, second = Inbox(), Inbox()
        await session.consume("fetcher.00", prefetch=4, deliver=first)
        held = list(await first.wait_for(4))
        await session.stop_consuming()
        await session.consume("fetcher.00", prefetch=2, deliver=second)
        await second.wait_for(2)
        await until_ready(session, "fetcher.00", 4)
        await session.ack(held[0])  # the first consumer held it: the second one's prefetch is still full
        await until_ready(session, "fetcher.00", 4)
        await session.ack(second.deliveries[0])
        await second.wait_for(3)
        for n in range(1, 4):
            await session.ack(second.deliveries[n])
            await second.wait_for(min(n + 3, 6))
        assert sorted(d.body for d in (*held, *second.deliveries)) == [b"%d" % n for n in range(10)]


async def test_unsettled_messages_are_counted_whichever_consumer_they_came_through(broker: Broker) -> None:
    """The broker delivers none of them a second time, and all of them again when the session ends."""
    async with broker.connect(TOPOLOGY) as session:
        for n in range(10):
            await session.publish(publication(b"%d" % n))
        inbox = Inbox()
        for round_, prefetch in enumerate((3, 2, 4), start=1):
            await session.consume("fetcher.00", prefetch=prefetch, deliver=inbox)
            await inbox.wait_for((0, 3, 5, 9)[round_])
            await until_ready(session, "fetcher.00", (10, 7, 5, 1)[round_])
            await session.stop_consuming("fetcher.00")
        for settled in (0, 3, 5):  # one of each consumer
            await session.ack(inbox.deliveries[settled])
        await session.requeue(inbox.deliveries[8])
        await until_ready(session, "fetcher.00", 2)
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        await inbox.wait_for(11)
        assert len({delivery.body for delivery in inbox.deliveries}) == 10
    async with broker.connect(TOPOLOGY) as session:
        await until_ready(session, "fetcher.00", 7)
        again = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=again)
        held = {delivery.body for n, delivery in enumerate(inbox.deliveries) if n not in {0, 3, 5}}
        assert {delivery.body for delivery in await again.wait_for(7)} == held
        assert all(delivery.redelivered for delivery in again.deliveries)


async def test_messages_acknowledged_at_once_and_in_any_order_take_no_other_with_them(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=inbox)
        for n in range(10):
            await session.publish(publication(b"%d" % n))
        await inbox.wait_for(10)
        await session.stop_consuming()
        for n in (2, 0, 1):
            await session.ack(inbox.deliveries[n])
        await session.requeue(inbox.deliveries[3])
        for n in (4, 5, 7):
            await session.ack(inbox.deliveries[n])
        await until_ready(session, "fetcher.00", 1)
    async with broker.connect(TOPOLOGY) as session:
        again = Inbox()
        await session.consume("fetcher.00", prefetch=10, deliver=again)
        assert sorted(delivery.body for delivery in await again.wait_for(4)) == [b"3", b"6", b"8", b"9"]


async def test_a_consumer_taken_up_and_down_many_times_loses_and_repeats_nothing(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        inbox = Inbox()
        for n in range(20):
            await session.consume("fetcher.00", prefetch=1 + n % 3, deliver=inbox)
            await session.publish(publication(b"%d" % n))
            await inbox.wait_for(n + 1)
            await session.ack(inbox.deliveries[-1])
            await session.stop_consuming()
        await until_ready(session, "fetcher.00", 0)
        assert len({delivery.message_id for delivery in inbox.deliveries}) == 20


async def test_a_message_goes_straight_into_a_named_queue(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication(key=TOPOLOGY.fetcher.retry, exchange=""))
        await until_ready(session, TOPOLOGY.fetcher.retry, 1)
        assert await session.count_ready("fetcher.00") == 0


async def test_results_are_routed_to_the_writer_only(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication(key="feed.fetched.v1"))
        await until_ready(session, "writer", 1)
        assert await session.count_ready("fetcher.00") == 0


@pytest.mark.parametrize("exchange", [EXCHANGE, ""])
async def test_a_publish_that_no_queue_takes_is_an_error_and_ends_the_session(broker: Broker, exchange: str) -> None:
    async with broker.connect(TOPOLOGY) as session:
        with pytest.raises(Unroutable):
            await session.publish(publication(key="nobody", exchange=exchange))
        assert session.lost.is_set()


async def test_an_oversized_message_is_refused_and_the_next_goes_through(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        with pytest.raises(MessageTooLarge):
            await session.publish(publication(b"x" * (MOST_BYTES + 1)))
        await session.publish(publication(b"x" * MOST_BYTES))
        await until_ready(session, "fetcher.00", 1)


async def test_a_message_that_the_broker_itself_refuses_harms_no_other(amqp_url: str) -> None:
    """RabbitMQ closes the channel over an oversized message, and the connection over what else was on the channel."""
    broker = RabbitMQ(amqp_url, name="conformance", max_message_bytes=10**9)

    async def publish(session: Session, body: bytes) -> str:
        try:
            await session.publish(publication(body))
        except MessageTooLarge:
            return "too large"
        except BrokerUnavailable:
            return "try again"
        return "confirmed"

    bodies = [b"small"] * 20 + [b"x" * 17_000_000] + [b"small"] * 20
    async with broker.connect(TOPOLOGY) as session:
        results = await asyncio.gather(*(publish(session, body) for body in bodies))
        assert [n for n, result in enumerate(results) if result == "too large"] == [20]
    async with broker.connect(TOPOLOGY) as session:  # the first session may be lost; the next one knows the limit
        results = await asyncio.gather(*(publish(session, body) for body in bodies))
        assert results == ["confirmed"] * 20 + ["too large"] + ["confirmed"] * 20


async def test_many_publishes_at_once_are_all_confirmed(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await asyncio.gather(*(session.publish(publication()) for _ in range(200)))
        await until_ready(session, "fetcher.00", 200)


async def test_a_queue_that_does_not_exist_is_counted_as_none(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        assert await session.count_ready("nobody") is None
        assert await session.count_ready("fetcher.00") == 0
        assert not session.lost.is_set()


async def consumers(session: Session, expected: int) -> None:
    async with asyncio.timeout(30):
        while await session.count_consumers("fetcher.00") != expected:
            await asyncio.sleep(0.02)


async def test_consumers_of_all_sessions_are_counted(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        assert await session.count_consumers("nobody") == await session.count_consumers("fetcher.00") == 0
        await session.consume("fetcher.00", prefetch=1, deliver=lambda _: None)
        await other.consume("fetcher.00", prefetch=1, deliver=lambda _: None)
        await consumers(session, 2)
        await other.stop_consuming()
        await consumers(session, 1)


async def test_a_consumer_that_was_ended_counts_until_what_it_holds_is_settled(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session, broker.connect(TOPOLOGY) as other:
        inbox = Inbox()
        await session.consume("fetcher.00", prefetch=2, deliver=inbox)
        for _ in range(3):
            await other.publish(publication())
        await inbox.wait_for(2)
        await session.stop_consuming("fetcher.00")
        await consumers(other, 1)
        await session.consume("fetcher.00", prefetch=1, deliver=inbox)
        await inbox.wait_for(3)
        await consumers(other, 2)
        for delivery in inbox.deliveries[:2]:
            await session.ack(delivery)
        await consumers(other, 1)
        await session.stop_consuming("fetcher.00")
        await session.ack(inbox.deliveries[2])
        await consumers(other, 0)


async def test_declaring_again_changes_nothing_and_other_arguments_are_a_clear_error(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.publish(publication())
    async with broker.connect(TOPOLOGY) as session:
        await until_ready(session, "fetcher.00", 1)
    other = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)
    queue = next(queue for queue in other.queues if queue.name == TOPOLOGY.writer.retry)
    changed = replace(other, queues=(replace(queue, arguments={**queue.arguments, "x-message-ttl": 5}),))
    with pytest.raises(TopologyMismatch, match=queue.name):
        async with broker.connect(changed):
            pass


async def test_a_deleted_queue_ends_the_session_of_its_consumer(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        await session.consume("fetcher.00", prefetch=1, deliver=Inbox())
        if isinstance(broker, MemoryBroker):
            broker.delete_queue("fetcher.00")
        else:
            assert isinstance(broker, RabbitMQ)
            await broker.delete(TOPOLOGY)
        async with asyncio.timeout(30):
            await session.lost.wait()


async def test_every_call_of_a_lost_session_raises(broker: Broker) -> None:
    async with broker.connect(TOPOLOGY) as session:
        pass
    with pytest.raises(BrokerUnavailable):
        await session.publish(publication())


async def test_a_broker_that_is_not_there_is_unavailable_and_shows_no_password() -> None:
    nobody = RabbitMQ("amqp://user:secret@127.0.0.1:1/", name="conformance", max_message_bytes=1)
    with pytest.raises(BrokerUnavailable) as error:
        async with nobody.connect(TOPOLOGY):
            pass
    assert "secret" not in str(error.value)
