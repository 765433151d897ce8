"""Ends the tasks of fetches by hand (`fire_tasks`) with what they brought.

The writer does it in the transaction that writes the result. A task whose result does not come ends by its deadline. A
result that comes after that corrects it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from psycopg.types.json import Json
from pydantic_core import to_json

from services.writer.article import Article
from services.writer.store import Reading, Written
from shared.database.postgres import Connection
from shared.wire.enrichment import Enrichment
from shared.wire.results import Entry, FeedFetched

MOST_ENTRIES = 500
"""The most entries that a dry run shows."""

MOST_BYTES = 512 * 1024
"""The most bytes of these, as JSON."""

URL_CHARACTERS = 2000
TITLE_CHARACTERS = 300

NO_RESULT = """(
    'no result within ' || round(extract(epoch FROM deadline_at - queued_at))
    || ' s: is a fetcher running, and a writer? `feedmill status` tells; or its host has to be waited for'
)"""
"""SQL: the error of a task whose deadline has passed."""

# The first result ends the task: a retry's is no longer what the person waited for.
_END = """
UPDATE fire_tasks
SET status = %(status)s, started_at = %(started_at)s, finished_at = clock_timestamp(), outcome = %(outcome)s,
    fetched = %(fetched)s, new = %(new)s, changed = %(changed)s, known = %(known)s, entries = %(entries)s,
    error = %(error)s
WHERE id = %(id)s AND feed_id = %(feed_id)s AND dry_run = %(dry_run)s AND outcome IS NULL
"""


async def end_fires(connection: Connection, written: Written, retry_at: datetime) -> None:
    """End the tasks whose results were written.

    Args:
        connection: in the transaction that wrote them.
        written: what it has changed.
        retry_at: when a feed with a soft error leaves the retry queue.
    """
    fired = [number for number, reading in enumerate(written.readings) if reading.fetched.reason == "manual"]
    for number in sorted(fired, key=lambda number: written.readings[number].fetched.claim_id):
        fetched = written.readings[number].fetched
        error = describe_error(fetched, retry_at)
        await end_task(connection, fetched, count(written, number), error, dry_run=False)


async def end_task(
    connection: Connection,
    fetched: FeedFetched,
    counts: dict[str, int] | None,
    error: str | None,
    *,
    dry_run: bool,
    entries: list[dict[str, Any]] | None = None,
) -> None:
    """End the task of a result, if it has one. Without counts the result could not be written."""
    await connection.execute(
        _END.encode(),
        {
            "id": fetched.claim_id,
            "feed_id": fetched.feed_id,
            "dry_run": dry_run,
            "status": "error" if error else "done",
            "started_at": fetched.started_at,
            "outcome": fetched.outcome.value,
            **(counts or dict.fromkeys(("fetched", "new", "changed", "known"))),
            "entries": None if entries is None else Json(entries, dumps=to_json),
            "error": error,
        },
    )


def describe_error(fetched: FeedFetched, retry_at: datetime) -> str | None:
    """Return why a fetch did not work, and when it is retried; None if it worked."""
    if fetched.outcome.is_success:
        return None
    error = f"{fetched.outcome.value}: {fetched.error or fetched.outcome.words}"
    if fetched.final:
        return error
    return f"{error}; it is retried at {retry_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def count(written: Written, number: int) -> dict[str, int]:
    """Return how many entries a result has, and how many of them are new articles, changed ones, known ones."""
    states = [state for _, state in _states(written, number)]
    fetched = written.readings[number].fetched.items_seen
    new, changed = states.count("new"), states.count("changed")
    return {"fetched": fetched, "new": new, "changed": changed, "known": fetched - new - changed}


def show_entries(written: Written, number: int) -> list[dict[str, Any]]:
    """Return a result's entries for a person, in its order, as many as `MOST_ENTRIES` and `MOST_BYTES` allow."""
    reading, shown, size = written.readings[number], list[dict[str, Any]](), 0
    for (name, state), entry in zip(_states(written, number), reading.fetched.entries[:MOST_ENTRIES], strict=False):
        row = {
            "md5": name,
            "url": entry.url[:URL_CHARACTERS],
            "title": entry.title[:TITLE_CHARACTERS],
            "published_at": entry.published_at,
            "content_quality": entry.content_quality,
            "flags": entry.flags,
            "state": state,
            **_labels(entry, written.articles[name] if state == "new" else None),
        }
        size += len(to_json(row))
        if size > MOST_BYTES:
            break
        shown.append(row)
    return shown


def _labels(entry: Entry, new: Article | None) -> dict[str, Any]:
    """Return what was found out about an entry, and which article it would repeat."""
    found = entry.enrichment or Enrichment()
    return {
        "detected_language": found.language,
        "topic": found.topic,
        "duplicate_of": new and new.duplicate_of,
        "duplicate_kind": new and new.duplicate_kind,
        "duplicate_score": new and new.duplicate_score,
    }


def _states(written: Written, number: int) -> Iterator[tuple[str, str]]:
    """Yield for each entry of a result its article's name, and whether that is `new`, `changed` or `known`.

    An article counts as new or changed once: in the first result of the batch that has it, or in the one whose text it
    got.
    """
    reading: Reading = written.readings[number]
    assert written.changes is not None
    counted: set[str] = set()
    for name in reading.names:
        article, state = written.articles.get(name), "known"
        if article is not None and name not in counted:
            if name in written.changes.new and article.brought_by == number:
                state = "new"
            elif name in written.changes.updated and article.result == number:
                state = "changed"
        counted.add(name)
        yield name, state


async def end_overdue(connection: Connection) -> None:
    """Let the tasks whose deadline has passed end with an error."""
    await connection.execute(
        f"""
        UPDATE fire_tasks SET status = 'error', finished_at = deadline_at, error = {NO_RESULT}
        WHERE id IN (
            SELECT id FROM fire_tasks WHERE status = 'running' AND deadline_at <= now() FOR UPDATE SKIP LOCKED
        )
        """.encode(),  # noqa: S608 - our own text
        [],
    )
