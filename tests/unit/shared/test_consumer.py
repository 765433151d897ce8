from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from shared.broker.consumer import Batching, Consumer
from shared.broker.port import Delivery, Outgoing, Publication
from shared.broker.settling import FROM_LATER_VERSIONS
from shared.broker.topology import EXCHANGE, TRIALS, build_topology, fetch_routing_key
from shared.errors import Blocked, DatabaseUnavailable, NackAndRequeue, Unprocessable
from shared.wire.envelope import Message
from shared.wire.jobs import FetchFeed
from shared.wire.results import FeedFetched
from tests.factories import make_job, make_result
from tests.fakes.memory_broker import MemoryBroker, MemorySession

TOPOLOGY = build_topology(fast_delay_seconds=20, retry_delay_seconds=3600, message_retry_seconds=60, fetcher_shards=1)
RETRY, DEAD = TOPOLOGY.fetcher.message_retry, TOPOLOGY.fetcher.dead


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


async def put(broker: MemoryBroker, *messages: Message) -> None:
    async with broker.connect(TOPOLOGY) as session:
        for message in messages:
            key = fetch_routing_key(message.group, 1) if isinstance(message, FetchFeed) else message.KIND
            await session.publish(Outgoing(message, key).to_publication())


@asynccontextmanager
async def consuming(
    broker: MemoryBroker,
    handler: Callable[[Sequence[FetchFeed]], object],
    batching: Batching | None = None,
    failures: int = 2,
) -> AsyncIterator[asyncio.Event]:
    async def handle(batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        result = handler(batch)
        return await result if asyncio.iscoroutine(result) else result  # type: ignore[return-value]

    stop = asyncio.Event()
    consumer = Consumer(
        broker, TOPOLOGY, TOPOLOGY.fetcher, FetchFeed, handle, prefetch=10, failures=failures, batching=batching
    )
    running = asyncio.create_task(consumer.run(stop))
    try:
        yield stop
    finally:
        stop.set()
        await asyncio.wait_for(running, 30)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)


def results(broker: MemoryBroker) -> list[FeedFetched]:
    return [FeedFetched.decode(p.body, p.content_encoding) for p in broker.publications("writer")]


async def test_a_message_is_acknowledged_after_its_results_were_confirmed(broker: MemoryBroker) -> None:
    await put(broker, make_job(feed_id=7))
    async with consuming(broker, lambda batch: [Outgoing(make_result(feed_id=batch[0].feed_id), FeedFetched.KIND)]):
        await until(lambda: len(broker.bodies("writer")) == 1)
    assert [result.feed_id for result in results(broker)] == [7]
    assert broker.bodies("fetcher.00") == []


async def test_a_message_of_a_later_version_is_handled_without_its_unknown_fields(broker: MemoryBroker) -> None:
    later = replace(
        Outgoing(make_job(feed_id=7), fetch_routing_key(make_job().group, 1)).to_publication(),
        body=make_job(feed_id=7).model_dump_json().replace("{", '{"since_tomorrow":1,', 1).encode(),
    )
    seen: list[FetchFeed] = []
    async with broker.connect(TOPOLOGY) as session:
        for _ in range(2):
            await session.publish(later)
    before = messages_of_later_versions()

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        seen.extend(batch)
        return []

    async with consuming(broker, handler):
        await until(lambda: len(seen) == 2)
    assert (seen, messages_of_later_versions() - before) == ([make_job(feed_id=7)] * 2, 2)
    assert broker.bodies(DEAD) == []


def messages_of_later_versions() -> float:
    return float(FROM_LATER_VERSIONS.labels("fetcher")._value.get())


async def test_a_refused_publish_keeps_the_message_and_does_not_handle_it_again(broker: MemoryBroker) -> None:
    calls = 0

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        return [Outgoing(make_result(), FeedFetched.KIND)]

    await put(broker, make_job())
    broker.refusing.add("writer")
    async with consuming(broker, handler):
        await until(lambda: calls == 1)
        await asyncio.sleep(0)
        assert broker.bodies("writer") == []
        broker.refusing.clear()
        await until(lambda: len(broker.bodies("writer")) == 1)
    assert calls == 1


async def test_results_of_a_lost_session_are_published_through_the_next(
    broker: MemoryBroker,
) -> None:
    calls = 0

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        if calls == 1:
            broker.drop_connections()
        return [Outgoing(make_result(), FeedFetched.KIND)]

    await put(broker, make_job())
    async with consuming(broker, handler):
        await until(lambda: len(broker.bodies("writer")) == 1)
    assert calls == 1
    assert broker.bodies("fetcher.00") == []


def lose_first_ack(broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch) -> list[Delivery]:
    """Lose the first acknowledgement together with its session; return the list of all that are sent."""
    sent: list[Delivery] = []
    ack = MemorySession.ack

    async def lost_ack(session: MemorySession, delivery: Delivery) -> None:
        sent.append(delivery)
        if len(sent) > 1:
            await ack(session, delivery)
        else:
            asyncio.get_running_loop().call_soon(broker.drop_connections)

    monkeypatch.setattr(MemorySession, "ack", lost_ack)
    return sent


async def test_a_message_whose_acknowledgement_was_lost_with_its_session_is_not_handled_again(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        return [Outgoing(make_result(), FeedFetched.KIND)]

    sent = lose_first_ack(broker, monkeypatch)
    await put(broker, make_job())
    async with consuming(broker, handler):
        await until(lambda: len(sent) == 2)
    assert calls == 1
    assert len(broker.bodies("writer")) == 1
    assert broker.bodies("fetcher.00") == []


async def test_a_deferred_job_is_handled_when_it_comes_again_after_a_lost_acknowledgement(
    broker: MemoryBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, job = 0, make_job()

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        if calls == 1:
            return [Outgoing.after(RETRY, job, then="fetcher.00")]
        return [Outgoing(make_result(), FeedFetched.KIND)]

    sent = lose_first_ack(broker, monkeypatch)
    await put(broker, job)
    async with consuming(broker, handler):
        await until(lambda: len(sent) == 2)
    assert calls == 2


async def test_a_message_that_was_being_handled_when_its_session_was_lost_is_handled_again(
    broker: MemoryBroker,
) -> None:
    calls = 0

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        if calls == 1:
            broker.drop_connections()
            await asyncio.Event().wait()
        return [Outgoing(make_result(), FeedFetched.KIND)]

    await put(broker, make_job())
    async with consuming(broker, handler):
        await until(lambda: len(broker.bodies("writer")) == 1)
    assert calls == 2
    assert broker.bodies("fetcher.00") == []


async def test_of_several_publications_only_unconfirmed_ones_are_published_again(broker: MemoryBroker) -> None:
    await put(broker, make_job(feed_id=1))
    refused = asyncio.Event()

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        broker.refusing.add(RETRY)
        asyncio.get_running_loop().call_soon(refused.set)
        return [
            Outgoing(make_result(), FeedFetched.KIND),
            Outgoing.after(RETRY, make_job(attempt=1), then="fetcher.00"),
        ]

    async with consuming(broker, handler):
        await refused.wait()
        await until(lambda: len(broker.bodies("writer")) == 1)
        broker.refusing.clear()
        broker.drop_connections()
        await until(lambda: len(broker.bodies(RETRY)) == 1)
    assert len(broker.bodies("writer")) == 1


async def test_while_the_database_is_away_messages_are_kept(broker: MemoryBroker) -> None:
    away = True
    calls = 0

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        nonlocal calls
        calls += 1
        if away:
            raise DatabaseUnavailable("away")
        return [Outgoing(make_result(), FeedFetched.KIND)]

    await put(broker, make_job())
    async with consuming(broker, handler):
        await until(lambda: calls >= 1)
        away = False
        await until(lambda: len(broker.bodies("writer")) == 1)
    assert broker.bodies(RETRY) == broker.bodies(DEAD) == []


async def test_after_a_bug_a_message_is_retried_and_then_dead_lettered_with_its_reason(broker: MemoryBroker) -> None:
    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        raise ZeroDivisionError("by http://user:secret@host/")

    await put(broker, make_job())
    async with consuming(broker, handler, failures=1):
        await until(lambda: len(broker.bodies(RETRY)) == 1)
        (first,) = broker.publications(RETRY)
        assert first.headers["failures"] == 1
        broker.queues["fetcher.00"].ready.append(broker.queues[RETRY].ready.popleft())  # its hour is over
        broker.dispatch()
        await until(lambda: len(broker.bodies(DEAD)) == 1)
    (dead,) = broker.publications(DEAD)
    assert dead.headers["reason"] == "exhausted"
    assert dead.message_id == first.message_id
    assert dead.headers["error"] == "ZeroDivisionError: by http://***@host/"
    assert dead.headers["first_queue"] == "fetcher.00"
    assert dead.headers["service"] == "fetcher"
    assert "died_at" in dead.headers
    assert FetchFeed.decode(dead.body, dead.content_encoding) == make_job()


async def test_a_message_that_cannot_be_decoded_stops_nobody(broker: MemoryBroker) -> None:
    await put(broker, make_job(feed_id=1))
    broker.queues["fetcher.00"].ready[0].publication = Outgoing(make_result(), "x").to_publication()
    await put(broker, make_job(feed_id=2))
    async with consuming(broker, lambda batch: [Outgoing(make_result(feed_id=batch[0].feed_id), FeedFetched.KIND)]):
        await until(lambda: len(broker.bodies("writer")) == 1 and len(broker.bodies(DEAD)) == 1)
    assert broker.publications(DEAD)[0].headers["reason"] == "undecodable"
    assert [result.feed_id for result in results(broker)] == [2]


async def test_a_stage_without_a_dead_queue_drops_what_fails(broker: MemoryBroker) -> None:
    async def handler(batch: Sequence[FeedFetched]) -> list[Outgoing]:
        handled.append(batch[0].feed_id)
        if batch[0].feed_id == 1:
            raise RuntimeError("a bug")
        return []

    handled, stop = list[int](), asyncio.Event()
    async with broker.connect(TOPOLOGY) as session:
        for n in (1, 2):
            await session.publish(Outgoing.into(TRIALS.queue, make_result(feed_id=n)).to_publication())
        await session.publish(Publication(TRIALS.queue, b"no result", EXCHANGE, FeedFetched.KIND))
    consumer = Consumer(broker, TOPOLOGY, TRIALS, FeedFetched, handler, prefetch=1, failures=0)
    running = asyncio.create_task(consumer.run(stop))
    await until(lambda: handled == [1, 2] and not broker.bodies(TRIALS.queue))
    stop.set()
    await running
    assert not any(broker.bodies(queue.name) for queue in TOPOLOGY.queues)


async def test_the_broker_dead_letters_a_message_that_we_cannot_publish(broker: MemoryBroker) -> None:
    await put(broker, make_job(feed_id=1))
    stored = broker.queues["fetcher.00"].ready[0]
    stored.publication = Publication("fetcher.00", b"\xff" * 2_000_000, "", "nonsense", headers={"failures": "many"})
    await put(broker, make_job(feed_id=2))
    async with consuming(broker, lambda batch: [Outgoing(make_result(feed_id=batch[0].feed_id), FeedFetched.KIND)]):
        await until(lambda: len(broker.bodies("writer")) == 1 and len(broker.bodies(DEAD)) == 1)
    assert broker.bodies(DEAD) == [b"\xff" * 2_000_000]


async def test_a_result_that_is_too_large_dead_letters_its_job_and_no_other() -> None:
    broker = MemoryBroker(max_message_bytes=2000)
    await put(broker, make_job(feed_id=1), make_job(feed_id=2))

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        error = "x" * (500 if batch[0].feed_id == 2 else 1)
        url = "http://news.example/" + "y" * (2000 if batch[0].feed_id == 1 else 1)
        return [Outgoing(make_result(feed_id=batch[0].feed_id, error=error, url=url), FeedFetched.KIND)]

    async with consuming(broker, handler):
        await until(lambda: len(broker.bodies("writer")) == 1 and len(broker.bodies(DEAD)) == 1)
    (dead,) = broker.publications(DEAD)
    assert dead.headers["reason"] == "too_large"
    assert FetchFeed.decode(dead.body).feed_id == 1


async def test_the_poison_of_a_batch_is_found_and_all_others_go_through(broker: MemoryBroker) -> None:
    await put(broker, *(make_job(feed_id=n) for n in range(1, 9)))
    done: list[int] = []

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        if any(job.feed_id == 5 for job in batch):
            raise Unprocessable("number five")
        done.extend(job.feed_id for job in batch)
        return []

    async with consuming(broker, handler, Batching(size=8, linger_seconds=0.01, concurrency=1)):
        await until(lambda: len(done) == 7 and len(broker.bodies(DEAD)) == 1)
    assert sorted(done) == [1, 2, 3, 4, 6, 7, 8]
    assert FetchFeed.decode(broker.bodies(DEAD)[0]).feed_id == 5


async def test_what_follows_a_batch_is_published_and_only_the_job_of_what_is_too_large_is_dead_lettered() -> None:
    broker = MemoryBroker(max_message_bytes=2000)
    await put(broker, *(make_job(feed_id=n) for n in range(1, 9)))

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        urls = {job.feed_id: "http://news.example/" + "y" * (2000 if job.feed_id == 5 else 1) for job in batch}
        return [Outgoing(make_result(feed_id=n, url=url), FeedFetched.KIND) for n, url in urls.items()]

    async with consuming(broker, handler, Batching(size=8, linger_seconds=0.01, concurrency=1)):
        await until(lambda: len(broker.bodies(DEAD)) == 1 and not broker.bodies("fetcher.00"))
    assert FetchFeed.decode(broker.bodies(DEAD)[0]).feed_id == 5
    assert {FeedFetched.decode(body).feed_id for body in broker.bodies("writer")} == {1, 2, 3, 4, 6, 7, 8}


async def test_a_blocked_message_waits_alone_and_is_never_dead_lettered(broker: MemoryBroker) -> None:
    await put(broker, *(make_job(feed_id=n) for n in range(1, 9)))
    done: list[int] = []
    held = True

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        if held and any(job.feed_id == 5 for job in batch):
            raise Blocked("somebody holds feed 5")
        done.extend(job.feed_id for job in batch)
        return []

    async with consuming(broker, handler, Batching(size=8, linger_seconds=0.01, concurrency=1), failures=1):
        for _ in range(5):
            await until(lambda: len(broker.bodies(RETRY)) == 1 and len(done) == 7)
            assert broker.publications(RETRY)[0].headers["failures"] == 0
            assert sorted(done) == [1, 2, 3, 4, 6, 7, 8]
            broker.queues["fetcher.00"].ready.append(broker.queues[RETRY].ready.popleft())
            broker.dispatch()
        await until(lambda: len(broker.bodies(RETRY)) == 1)
        held = False
        broker.queues["fetcher.00"].ready.append(broker.queues[RETRY].ready.popleft())
        broker.dispatch()
        await until(lambda: 5 in done)
    assert broker.bodies(DEAD) == []


async def test_a_batch_is_closed_by_its_weight(broker: MemoryBroker) -> None:
    await put(broker, *(make_job(feed_id=n) for n in range(1, 7)))
    sizes: list[int] = []

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        sizes.append(len(batch))
        return []

    async with consuming(broker, handler, Batching(size=4, linger_seconds=0.01, weigh=lambda _: 2, concurrency=1)):
        await until(lambda: sum(sizes) == 6)
    assert sizes == [2, 2, 2]


async def test_on_stop_messages_that_were_not_begun_are_requeued_and_others_finish(broker: MemoryBroker) -> None:
    await put(broker, *(make_job(feed_id=n) for n in range(1, 4)))
    begun, may_finish = asyncio.Event(), asyncio.Event()

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        if batch[0].feed_id != 1:
            await may_finish.wait()
            raise NackAndRequeue("stopping")
        begun.set()
        await may_finish.wait()
        return [Outgoing(make_result(), FeedFetched.KIND)]

    async with consuming(broker, handler) as stop:
        await begun.wait()
        stop.set()
        may_finish.set()
    assert len(broker.bodies("writer")) == 1
    assert sorted(FetchFeed.decode(body).feed_id for body in broker.bodies("fetcher.00")) == [2, 3]


async def test_on_stop_a_message_that_cannot_be_settled_costs_no_other(broker: MemoryBroker) -> None:
    """A refusal, or a database that is away, while others still run."""
    await put(broker, make_job(feed_id=1), make_job(feed_id=2))
    begun, may_fail, may_finish = list[int](), asyncio.Event(), asyncio.Event()

    async def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        begun.append(batch[0].feed_id)
        if batch[0].feed_id == 1:
            await may_fail.wait()
            raise DatabaseUnavailable("away")
        await may_finish.wait()
        return [Outgoing(make_result(feed_id=2), FeedFetched.KIND)]

    async with consuming(broker, handler) as stop:
        await until(lambda: len(begun) == 2)
        stop.set()
        may_fail.set()
        for _ in range(50):
            await asyncio.sleep(0)
        may_finish.set()
    assert [result.feed_id for result in results(broker)] == [2]
    assert [FetchFeed.decode(body).feed_id for body in broker.bodies("fetcher.00")] == [1]


async def test_a_consumer_stops_while_the_broker_is_away(broker: MemoryBroker) -> None:
    broker.up = False
    async with consuming(broker, lambda batch: []) as stop:
        await asyncio.sleep(0)
        stop.set()


async def test_a_consumer_recovers_when_its_queue_was_deleted(broker: MemoryBroker) -> None:
    seen: list[int] = []

    def handler(batch: Sequence[FetchFeed]) -> list[Outgoing]:
        seen.append(batch[0].feed_id)
        return []

    await put(broker, make_job(feed_id=1))
    async with consuming(broker, handler):
        await until(lambda: seen == [1])
        broker.delete_queue("fetcher.00")
        await until(lambda: "fetcher.00" in broker.queues)
        await put(broker, make_job(feed_id=2))
        await until(lambda: seen == [1, 2])


async def test_a_message_that_unfolds_to_too_much_is_dead_lettered_and_others_are_handled(broker: MemoryBroker) -> None:
    handled: list[FetchFeed] = []

    def handle(batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        handled.extend(batch)
        return ()

    bombs = {
        "bytes": b'{"feed_id": "' + b"0" * 5_000_000 + b'"}',
        "values": b'{"source_config": {"a": [' + b"[]," * 30_000 + b"0]}}",
    }
    async with broker.connect(TOPOLOGY) as session:
        for name, plain in bombs.items():
            body = gzip.compress(plain)
            publication = Publication("fetcher.00", body, "", FetchFeed.KIND, "gzip", message_id=name)
            await session.publish(publication)
    await put(broker, make_job())
    async with consuming(broker, handle, Batching(size=10)):
        await until(lambda: len(broker.publications(DEAD)) == len(bombs) and bool(handled))
    assert handled == [make_job()]
    headers = {letter.message_id: letter.headers for letter in broker.publications(DEAD)}
    assert {header["reason"] for header in headers.values()} == {"too_large"}
    assert "unfolds to more than 524288 bytes" in str(headers["bytes"]["error"])
    assert "holds more than 20000 values" in str(headers["values"]["error"])


async def test_a_batch_that_unfolds_to_much_is_handled_in_parts(broker: MemoryBroker) -> None:
    sizes: list[int] = []

    def handle(batch: Sequence[FetchFeed]) -> Sequence[Outgoing]:
        sizes.append(len(batch))
        return ()

    jobs = [make_job(feed_id=n, source_config={"note": "x" * 300_000}) for n in range(10)]
    await put(broker, *jobs)
    async with consuming(broker, handle, Batching(size=10, linger_seconds=0.1)):
        await until(lambda: sum(sizes) == len(jobs))
    assert sizes == [4, 4, 2]  # of a million bytes each, as much as this broker takes
