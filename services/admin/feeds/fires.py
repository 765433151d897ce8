"""Fetches a feed by hand, ahead of the backlog, and tells what became of it.

The id of a task (a row of `fire_tasks`) is the `claim_id` of its job. A real fire claims the feed, and takes over a
claim that is alive: the earlier job's result then comes too late to change the feed's state. A dry run claims nothing.
The job goes to the front queue of its shard, so its host's limits hold as for any job.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import errors

from services.admin.actor import Actor, audit
from services.admin.errors import Conflict, NotFound
from services.scheduler.store import make_job, release_claims
from services.scheduler.tracing import trace_claim
from services.writer.fires.tasks import NO_RESULT
from shared.broker.port import Broker, Outgoing
from shared.broker.shards import front_of
from shared.broker.topology import Topology
from shared.database.postgres import Connection, Database
from shared.errors import ConfigurationError, FeedmillError, Unavailable, Unconfirmed
from shared.observability.secrets import mask_credentials
from shared.wire.jobs import FetchFeed
from shared.wire.outcomes import Outcome

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.1
LONGEST_LOOK_SECONDS = 1.0
"""The pauses between two looks at a task that somebody waits for: each is a transaction."""

ERROR_CHARACTERS = 500


class TooSoon(ConfigurationError):
    """The feed was fired within the last minute.

    Args:
        seconds: when it may be again, from now.
    """

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


# The job's columns, as claim.sql returns them. The clock is read after the lock: no claim is older than the one before.
_LOCK_FEED = b"""
SELECT feeds.id, url, source_type, source_config, etag, last_modified, validators_url, body_hash, cursor_at,
    politeness_group, last_outcome, probed_at, lying_since, date_order, date_order_seen, enabled,
    disabled_reason, digests, full_at,
    (SELECT max(until) FROM throttled_groups
     WHERE throttled_groups.politeness_group = feeds.politeness_group AND until > now()) AS throttled_until
FROM feeds LEFT JOIN feed_listings ON feed_id = feeds.id
WHERE feeds.id = %s FOR NO KEY UPDATE OF feeds
"""

_RUNNING_DRY = b"""
SELECT id FROM fire_tasks
WHERE feed_id = %s AND dry_run AND status = 'running' AND deadline_at > clock_timestamp() LIMIT 1
"""

_INSERT = b"""
INSERT INTO fire_tasks (id, feed_id, dry_run, requested_by, queued_at, deadline_at, held)
SELECT gen_random_uuid(), %(feed_id)s, %(dry_run)s, %(by)s, at, at + make_interval(secs => %(seconds)s),
    CASE WHEN %(dry_run)s THEN 'empty' ELSE tstzrange(at, at + interval '60 seconds') END
FROM clock_timestamp() AS at
RETURNING id, queued_at, deadline_at
"""

_CLAIM = b"""
UPDATE feeds SET claim_id = %(claim_id)s, claim_expires_at = %(claim_expires_at)s, issued_at = %(issued_at)s
WHERE id = %(id)s
"""

_HELD = b"""
SELECT max(upper(held)) AS until, greatest(extract(epoch FROM max(upper(held)) - clock_timestamp()), 0) AS seconds
FROM fire_tasks WHERE feed_id = %s AND NOT dry_run AND NOT isempty(held)
"""

_OVERDUE = "(status = 'running' AND deadline_at <= clock_timestamp())"

_COLUMNS = f"""
id, feed_id, dry_run, requested_by, queued_at, deadline_at, started_at, outcome, fetched, new, changed, known,
CASE WHEN {_OVERDUE} THEN 'error' ELSE status END AS status,
CASE WHEN {_OVERDUE} THEN deadline_at ELSE finished_at END AS finished_at,
CASE WHEN {_OVERDUE} THEN {NO_RESULT} ELSE error END AS error
"""

_READ = f"SELECT {_COLUMNS}, entries FROM fire_tasks WHERE id = %s"  # noqa: S608 - our own text

_LIST = f"""
SELECT {_COLUMNS} FROM fire_tasks
WHERE (%(feed_id)s::bigint IS NULL OR feed_id = %(feed_id)s)
    AND (%(queued_at)s::timestamptz IS NULL OR (queued_at, id) < (%(queued_at)s, %(id)s))
ORDER BY queued_at DESC, id DESC LIMIT %(limit)s
"""  # noqa: S608 - our own text


@dataclass(frozen=True)
class Spans:
    """In seconds: how long a claim lives, and how long a task may take."""

    claim_seconds: float
    fire_seconds: float


async def fire(
    database: Database,
    broker: Broker,
    topology: Topology,
    actor: Actor,
    feed_id: int,
    *,
    dry_run: bool,
    spans: Spans,
    traceparent: str | None = None,
) -> UUID:
    """Fetch a feed now; return the task's id. While a dry run of the feed runs, another one is the same.

    `traceparent` is that of the request, if it has one: the job's trace goes on with it.

    Raises:
        NotFound: there is no such feed.
        Conflict: it is disabled, or its row makes no job.
        TooSoon: it was fired within the last minute.
        BrokerUnavailable: the job could not be published. The task says so, and the minute is not used up.
    """
    try:
        async with database.transaction() as connection:
            id_, job = await _begin(connection, actor, feed_id, dry_run, spans)
    except errors.ExclusionViolation:
        async with database.transaction() as connection:
            raise await _too_soon(connection, feed_id) from None
    if job is not None:
        trace_claim(job, "fire", parent=traceparent)
        await _publish(database, broker, topology, job)
    return id_


async def _begin(
    connection: Connection, actor: Actor, feed_id: int, dry_run: bool, spans: Spans
) -> tuple[UUID, FetchFeed | None]:
    """Write the task and claim the feed; return the task's id, and the job to publish, if any."""
    row = await (await connection.execute(_LOCK_FEED, [feed_id])).fetchone()
    if row is None:
        raise NotFound(f"there is no feed {feed_id}: `feedmill feeds list` shows all")
    if dry_run:
        running = await (await connection.execute(_RUNNING_DRY, [feed_id])).fetchone()
        if running is not None:
            return running["id"], None
    elif not row["enabled"]:
        raise Conflict(
            f"feed {feed_id} is disabled ({row['disabled_reason']}): `feedmill feeds set {feed_id} --enable` enables"
            " it; a dry run works as it is"
        )
    given = {"feed_id": feed_id, "dry_run": dry_run, "by": actor.name, "seconds": spans.fire_seconds}
    task = await (await connection.execute(_INSERT, given)).fetchone()
    assert task is not None
    id_: UUID = task["id"]
    if not dry_run:
        await audit(connection, actor, "feed.fire", feed_id, {"task": str(id_)})
    if row["throttled_until"]:
        until = f"{row['throttled_until']:%Y-%m-%d %H:%M:%S} UTC"
        reason = f"skipped: {row['politeness_group']} asked to be left alone until {until}"
        await _end(connection, id_, reason, Outcome.SKIPPED)
        return id_, None
    return id_, await _make_job(connection, row, task, dry_run, spans)


async def _make_job(
    connection: Connection, row: Mapping[str, Any], task: Mapping[str, Any], dry_run: bool, spans: Spans
) -> FetchFeed:
    until = task["deadline_at"] if dry_run else task["queued_at"] + timedelta(seconds=spans.claim_seconds)
    claim = {"id": row["id"], "claim_id": task["id"], "claim_expires_at": until, "issued_at": task["queued_at"]}
    try:
        job = make_job({**row, **claim}, lambda: 1.0)  # no probe by chance: a person waits
    except ValueError as error:  # pydantic's ValidationError is one
        reason = mask_credentials(" ".join(str(error).split()))[:ERROR_CHARACTERS]
        raise Conflict(f"feed {row['id']} can't be fetched as it is set up: {reason}") from None
    if not dry_run:
        await connection.execute(_CLAIM, claim)
        return job.model_copy(update={"reason": "manual"})
    nothing = dict.fromkeys(("etag", "last_modified", "validators_url", "body_hash"))
    return job.model_copy(
        update={**nothing, "known": b"", "probe": False, "reason": "manual", "dry_run": True},
    )


async def _publish(database: Database, broker: Broker, topology: Topology, job: FetchFeed) -> None:
    """Publish the job of a task. If that fails, nothing is claimed, and the task ends with the reason."""
    publication = Outgoing.into(front_of(topology.fetcher.queue_of(job.group)), job).to_publication()
    try:
        async with broker.connect(topology) as session:
            await session.publish(publication)
    except Unconfirmed as error:  # a queue may have it: its result or the deadline ends the task
        log.warning("it is unknown whether a job was published: %s", error, extra={"feed_id": job.feed_id})
    except FeedmillError as error:
        try:
            async with database.transaction() as connection:
                await release_claims(connection, [job])
                await _end(connection, job.claim_id, f"the job could not be published: {error}")
        except Unavailable as away:
            log.warning("a task could not be ended either, its deadline will: %s", away)
        raise


async def _end(connection: Connection, id_: UUID, error: str, outcome: Outcome | None = None) -> None:
    """End a task whose job did not go out; its minute is not used up."""
    await connection.execute(
        "UPDATE fire_tasks SET status = 'error', error = %s, outcome = %s, finished_at = clock_timestamp(),"
        " held = 'empty' WHERE id = %s",
        [mask_credentials(error)[:ERROR_CHARACTERS], outcome and outcome.value, id_],
    )


async def _too_soon(connection: Connection, feed_id: int) -> TooSoon:
    row = await (await connection.execute(_HELD, [feed_id])).fetchone()
    assert row is not None
    at = f"{row['until']:%H:%M:%S} UTC" if row["until"] else "now"
    return TooSoon(
        f"feed {feed_id} was fired within the last minute: it may be again at {at}; a dry run may be made at any time",
        float(row["seconds"] or 0.0),
    )


async def read_fire(connection: Connection, id_: UUID) -> dict[str, Any]:
    """Return a task with its entries. Raises NotFound."""
    row = await (await connection.execute(_READ.encode(), [id_])).fetchone()
    if row is None:
        raise NotFound(
            f"there is no fire {id_}: ended ones are kept for FEEDMILL_FIRE_DAYS; `feedmill fire` starts one"
        )
    return row


async def await_fire(database: Database, id_: UUID, seconds: float) -> dict[str, Any]:
    """Return a task as soon as it has ended, or as it stands after so many seconds. Raises NotFound."""
    pause, loop = LOOK_SECONDS, asyncio.get_running_loop()
    until = loop.time() + seconds
    while True:
        async with database.transaction() as connection:
            row = await read_fire(connection, id_)
        left = until - loop.time()
        if row["status"] != "running" or left <= 0:
            return row
        await asyncio.sleep(min(pause, left))
        pause = min(1.5 * pause, LONGEST_LOOK_SECONDS)


async def list_fires(
    connection: Connection, feed_id: int | None, *, limit: int, after: tuple[datetime, UUID] | None
) -> list[dict[str, Any]]:
    """Return tasks without their entries, the latest first.

    Args:
        connection: to the database.
        feed_id: only of this feed.
        limit: so many at most.
        after: only tasks behind the one that was queued then and has this id.
    """
    queued_at, id_ = after or (None, None)
    chosen = {"feed_id": feed_id, "queued_at": queued_at, "id": id_, "limit": limit}
    return await (await connection.execute(_LIST.encode(), chosen)).fetchall()
