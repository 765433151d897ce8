"""Fetches by hand over HTTP: who may, when, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest
from pydantic import AmqpDsn

from services.admin.actor import Actor, Scope
from services.admin.feeds import fires
from services.admin.registry import NewFeed, add_feed, connect
from services.api.app import make_app
from services.api.resources import Resources, open_database
from services.cli.calls.within import WithinProcess
from services.writer.fires.tasks import end_overdue
from shared.broker.port import Delivery
from shared.wire.jobs import FetchFeed
from tests.fakes.memory_broker import MemoryBroker
from tests.integration.api.conftest import Caller


@pytest.fixture
def feed_id(database_url: str) -> int:
    with connect(database_url) as connection:
        id_, _ = add_feed(connection, NewFeed("http://news.example/feed"))
        connection.execute("UPDATE feeds SET etag = '\"1\"', body_hash = 'abc' WHERE id = %s", [id_])
        return id_


async def one(resources: Resources, statement: str) -> dict[str, Any]:
    async with resources.database.transaction() as connection:
        row = await (await connection.execute(statement.encode())).fetchone()
    assert row is not None
    return row


async def run(resources: Resources, statement: str) -> None:
    async with resources.database.transaction() as connection:
        await connection.execute(statement.encode())


async def jobs(resources: Resources) -> list[tuple[str, FetchFeed]]:
    """Return the jobs in front queues and shards, with their queues."""
    stage, found = resources.topology.fetcher, list[Delivery]()
    async with resources.broker().connect(resources.topology) as session:
        wanted = 0
        for queue in stage.queues:
            for name in (queue, f"{queue}.front"):
                wanted += await session.count_ready(name) or 0
                await session.consume(name, prefetch=100, deliver=found.append)
        async with asyncio.timeout(30):
            while len(found) < wanted:
                await asyncio.sleep(0.01)
    return [(delivery.queue, FetchFeed.decode(delivery.body, delivery.content_encoding)) for delivery in found]


async def test_a_fire_claims_the_feed_and_goes_to_the_front_of_its_shard(
    api: httpx.AsyncClient, resources: Resources, feed_id: int
) -> None:
    await run(resources, "UPDATE feeds SET claim_id = gen_random_uuid(), claim_expires_at = now() + interval '1 hour'")
    answer = await api.post(f"/api/feeds/{feed_id}/fire")
    assert answer.status_code == 202, answer.text
    task = answer.json()
    assert (task["status"], task["dry_run"], task["requested_by"]) == ("running", False, "test fm_test")
    assert answer.headers["location"] == f"/api/fires/{task['id']}"
    ((queue, job),) = await jobs(resources)
    assert queue == resources.topology.fetcher.queue_of("news.example") + ".front"
    assert (str(job.claim_id), job.reason, job.dry_run, job.etag, job.body_hash) == (
        task["id"],
        "manual",
        False,
        '"1"',
        "abc",
    )
    feed = await one(resources, "SELECT * FROM feeds")
    assert (feed["claim_id"], feed["issued_at"], feed["claim_expires_at"]) == (
        job.claim_id,
        job.queued_at,
        job.not_after,
    )
    row = await one(resources, "SELECT * FROM audit_log")
    assert (row["action"], row["target"], row["details"]) == ("feed.fire", str(feed_id), {"task": task["id"]})


async def test_of_a_hundred_fires_from_two_replicas_one_a_minute_is_accepted(
    api: httpx.AsyncClient, resources: Resources, caller: Caller, feed_id: int
) -> None:
    async with open_database(resources.settings).open() as database:
        other = make_app(replace(resources, database=database), caller.authenticate)
        async with httpx.AsyncClient(transport=WithinProcess(other), base_url="http://feedmill") as second:
            for minute in range(2):
                if minute:
                    await run(
                        resources,
                        """UPDATE fire_tasks SET held = tstzrange(
                        lower(held) - interval '1 minute', upper(held) - interval '1 minute')""",
                    )
                calls = [(api, second)[n % 2].post(f"/api/feeds/{feed_id}/fire") for n in range(100)]
                answers = await asyncio.gather(*calls)
                assert Counter(answer.status_code for answer in answers) == {202: 1, 429: 99}
                refused = [answer for answer in answers if answer.status_code == 429]
                assert all(1 <= int(answer.headers["retry-after"]) <= 60 for answer in refused)
                assert "a dry run may be made at any time" in refused[0].json()["detail"]
    assert len(await jobs(resources)) == 2


async def test_a_disabled_feed_is_fired_dry_only(api: httpx.AsyncClient, resources: Resources, feed_id: int) -> None:
    await run(resources, "UPDATE feeds SET enabled = false, disabled_reason = 'by hand'")
    answer = await api.post(f"/api/feeds/{feed_id}/fire")
    assert answer.status_code == 409
    assert f"feedmill feeds set {feed_id} --enable" in answer.json()["detail"]
    before = await one(resources, "SELECT * FROM feeds")
    answer = await api.post(f"/api/feeds/{feed_id}/fire", json={"dry_run": True})
    assert answer.status_code == 202
    again = await api.post(f"/api/feeds/{feed_id}/fire", json={"dry_run": True})
    assert again.json()["id"] == answer.json()["id"], "one at a time"
    ((_, job),) = await jobs(resources)
    assert (job.dry_run, job.reason, job.etag, job.body_hash, job.known) == (True, "manual", None, None, b"")
    assert job.not_after.isoformat() == answer.json()["deadline_at"].replace("Z", "+00:00")
    assert await one(resources, "SELECT * FROM feeds") == before
    assert (await one(resources, "SELECT count(*) AS n FROM audit_log"))["n"] == 0


async def test_who_may_fire_what(api: httpx.AsyncClient, caller: Caller, feed_id: int) -> None:
    assert (await api.post(f"/api/feeds/{feed_id + 1}/fire")).status_code == 404
    assert (await api.get(f"/api/fires/{uuid4()}")).status_code == 404
    assert (await api.post(f"/api/feeds/{feed_id}/fire", json={"dry": True})).status_code == 422
    assert (await api.post(f"/api/feeds/{2**63}/fire")).status_code == 422
    assert (await api.get("/api/fires/1")).status_code == 422
    caller.scopes = {Scope.READ}
    assert (await api.post(f"/api/feeds/{feed_id}/fire", json={"dry_run": True})).status_code == 403


async def test_a_job_that_can_not_be_published_uses_up_no_minute(
    api: httpx.AsyncClient, resources: Resources, caller: Caller, feed_id: int
) -> None:
    nowhere = resources.settings.model_copy(update={"amqp_url": AmqpDsn("amqp://guest:guest@127.0.0.1:1/")})
    lost = make_app(Resources(nowhere, resources.database), caller.authenticate)
    async with httpx.AsyncClient(transport=WithinProcess(lost), base_url="http://feedmill") as client:
        answer = await client.post(f"/api/feeds/{feed_id}/fire")
    assert answer.status_code == 503
    assert "RabbitMQ is away" in answer.json()["detail"]
    task = await one(resources, "SELECT * FROM fire_tasks")
    assert (task["status"], task["held"].isempty) == ("error", True)
    assert "could not be published" in task["error"]
    feed = await one(resources, "SELECT * FROM feeds")
    assert (feed["claim_id"], feed["claim_expires_at"], feed["issued_at"]) == (None, None, None)
    assert (await api.post(f"/api/feeds/{feed_id}/fire")).status_code == 202


async def test_a_job_that_is_not_confirmed_may_be_on_its_way(resources: Resources, feed_id: int) -> None:
    broker, actor = MemoryBroker(confirm_seconds=0.01), Actor("me", frozenset())
    broker.taking.clear()
    spans = fires.Spans(claim_seconds=3600.0, fire_seconds=300.0)
    task = await fires.fire(resources.database, broker, resources.topology, actor, feed_id, dry_run=False, spans=spans)
    row = await one(resources, "SELECT * FROM fire_tasks")
    assert (row["id"], row["status"], row["held"].isempty) == (task, "running", False)
    assert (await one(resources, "SELECT * FROM feeds"))["claim_id"] == task


async def test_a_feed_whose_row_makes_no_job_is_not_fired(
    api: httpx.AsyncClient, resources: Resources, feed_id: int
) -> None:
    await run(resources, "UPDATE feeds SET source_config = '[1]'")
    answer = await api.post(f"/api/feeds/{feed_id}/fire")
    assert answer.status_code == 409, answer.text
    assert (await one(resources, "SELECT claim_id FROM feeds"))["claim_id"] is None


async def test_a_host_that_asked_to_be_left_alone_is(
    api: httpx.AsyncClient, resources: Resources, feed_id: int
) -> None:
    await run(resources, "INSERT INTO throttled_groups VALUES ('news.example', now() + interval '1 hour')")
    task = (await api.post(f"/api/feeds/{feed_id}/fire")).json()
    assert (task["status"], task["outcome"]) == ("error", "skipped")
    assert "news.example asked to be left alone until" in task["error"]
    assert await jobs(resources) == []
    await run(resources, "DELETE FROM throttled_groups")
    assert (await api.post(f"/api/feeds/{feed_id}/fire")).json()["status"] == "running"


async def test_a_task_without_a_result_ends_by_its_deadline(
    api: httpx.AsyncClient, resources: Resources, feed_id: int
) -> None:
    task = (await api.post(f"/api/feeds/{feed_id}/fire")).json()
    waiting = asyncio.create_task(api.get(f"/api/fires/{task['id']}", params={"wait": 30}))
    await run(resources, "UPDATE fire_tasks SET deadline_at = now()")
    async with asyncio.timeout(20):
        found = (await waiting).json()
    assert found["status"] == "error"
    assert found["error"].startswith("no result within ")
    async with resources.database.transaction() as connection:
        await end_overdue(connection)
    row = await one(resources, "SELECT * FROM fire_tasks")
    assert (row["status"], row["error"], row["finished_at"]) == ("error", found["error"], row["deadline_at"])


async def test_fires_are_listed_page_by_page(
    api: httpx.AsyncClient, resources: Resources, database_url: str, feed_id: int
) -> None:
    with connect(database_url) as connection:
        other = add_feed(connection, NewFeed("http://other.example/feed"))[0]
        connection.execute(
            "INSERT INTO fire_tasks (id, feed_id, dry_run, requested_by, queued_at, deadline_at)"
            " SELECT gen_random_uuid(), CASE WHEN n = 6 THEN %s ELSE %s END, true, 'me',"
            " now() - n / 2 * interval '1 s', now() + interval '1 hour' FROM generate_series(1, 6) AS n",
            [other, feed_id],
        )
    seen, cursor = list[str](), None
    while True:
        given = {"limit": 2, "feed": feed_id} | ({"cursor": cursor} if cursor else {})
        page = (await api.get("/api/fires", params=given)).json()
        seen += [task["id"] for task in page["items"]]
        assert all(task["feed_id"] == feed_id and "entries" not in task for task in page["items"])
        cursor = page["next"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 5
    assert len((await api.get("/api/fires")).json()["items"]) == 6
    for made_up in ("WyJhIiwiYiJd", "bm8"):
        assert (await api.get("/api/fires", params={"cursor": made_up})).status_code == 422
