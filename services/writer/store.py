"""The writer's SQL: one transaction for articles, ledger, feed state and fetch log.

Locks are taken in one order by every writer (feeds by id, then articles by md5), so that any number of them side by
side cannot deadlock.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from uuid import UUID

from psycopg import sql
from psycopg.types.json import Jsonb

from services.writer.feed_state import FeedState, News, Rules, advance
from services.writer.pace_column import read_pace, write_pace
from shared.messages import Entry, FeedFetched
from shared.politeness import politeness_group
from shared.postgres import Connection

log = logging.getLogger(__name__)

MAX_UPDATES = 24
"""A feed that prints the time into its entries changes them for ever; after so many updates they count as unchanged."""

LAST_SEEN_EVERY = "1 day"
"""`last_seen_at` is refreshed at most this often per article: most polls repeat what is known."""

DOUBTFUL = frozenset({"date_guessed", "date_clamped", "date_ambiguous"})
"""Flags of an entry whose date says nothing of when it came."""

_STATE_COLUMNS = tuple(field.name for field in fields(FeedState))


@dataclass(frozen=True)
class Written:
    """What a batch came to."""

    new: int
    """Articles that nobody had seen."""
    updated: int
    """Articles whose text had changed."""
    repeated: int
    """Articles that were known as they are."""
    claims: Counter[str] = field(default_factory=Counter, compare=False)
    """Claims that ended: `completed`, `failed`, `dropped` (stale job); `late`: results whose claim was over before."""


async def write_batch(
    connection: Connection, batch: Sequence[FeedFetched], *, now: datetime, rules: Rules, proxy_hosts: frozenset[str]
) -> Written:
    """Write every result of `batch`. Writing the same result again changes nothing.

    Results of feeds that were removed meanwhile are dropped: nobody asks for them any more.
    """
    feeds = await _lock_feeds(connection, {fetched.feed_id for fetched in batch})
    logged = await _logged(connection, batch)
    fresh = _unique(fetched for fetched in batch if fetched.result_id not in logged and fetched.feed_id in feeds)
    articles = _articles(fresh)
    known = await _known_items(connection, articles)
    new = await _insert_new(connection, [articles[md5] for md5 in sorted(articles.keys() - known.keys())], now)
    changed = {md5 for md5, item in known.items() if item.is_changed_by(articles[md5])}
    locked = await _lock_outdated(connection, sorted(known), changed, now)
    updated = await _update_changed(connection, [articles[md5] for md5 in sorted(changed & locked)])
    await _touch(connection, sorted(locked), now)

    news = _news(fresh, [articles[md5] for md5 in new])
    await _log(connection, fresh, news)
    await _note_throttles(connection, fresh, proxy_hosts)
    claims = await _advance_feeds(connection, feeds, fresh, news, now, rules, proxy_hosts)
    return Written(new=len(new), updated=updated, repeated=len(articles) - len(new) - updated, claims=claims)


@dataclass(frozen=True)
class _Article:
    entry: Entry
    feed_id: int
    result_id: UUID


def _unique(results: Iterable[FeedFetched]) -> list[FeedFetched]:
    """Drop the second copy of a result that was delivered twice into one batch."""
    return list({fetched.result_id: fetched for fetched in results}.values())


def _articles(batch: Sequence[FeedFetched]) -> dict[str, _Article]:
    """Return the batch's articles by md5; of several with one md5 the first counts."""
    articles: dict[str, _Article] = {}
    for fetched in batch:
        for entry in fetched.entries:
            articles.setdefault(entry.md5, _Article(entry, fetched.feed_id, fetched.result_id))
    return articles


def _news(batch: Sequence[FeedFetched], new: Sequence[_Article]) -> dict[UUID, News]:
    """Return what was new in each result."""
    entries: dict[UUID, list[Entry]] = {fetched.result_id: [] for fetched in batch}
    for article in new:
        entries[article.result_id].append(article.entry)
    return {
        id_: News(len(own), [e.published_at for e in own if e.published_at and not DOUBTFUL.intersection(e.flags)])
        for id_, own in entries.items()
    }


async def _lock_feeds(connection: Connection, ids: Iterable[int]) -> dict[int, FeedState]:
    columns = sql.SQL(", ").join(map(sql.Identifier, _STATE_COLUMNS))
    cursor = await connection.execute(
        sql.SQL("SELECT {} FROM feeds WHERE id = ANY(%b) ORDER BY id FOR NO KEY UPDATE").format(columns),
        [sorted(ids)],
    )
    return {row["id"]: FeedState(**row | {"pace": read_pace(row["pace"])}) for row in await cursor.fetchall()}


async def _logged(connection: Connection, batch: Sequence[FeedFetched]) -> set[UUID]:
    cursor = await connection.execute(
        "SELECT result_id FROM feed_fetch_log WHERE result_id = ANY(%b)", [[fetched.result_id for fetched in batch]]
    )
    return {row["result_id"] for row in await cursor.fetchall()}


@dataclass(frozen=True)
class _Known:
    """What the ledger has of an article."""

    feed_id: int
    content_hash: str

    def is_changed_by(self, article: _Article) -> bool:
        """Only the feed that brought an article changes it: two feeds may print the same one with different texts."""
        return article.feed_id == self.feed_id and article.entry.content_hash != self.content_hash


async def _known_items(connection: Connection, articles: Mapping[str, _Article]) -> dict[str, _Known]:
    if not articles:
        return {}
    cursor = await connection.execute(
        "SELECT md5, feed_id, content_hash FROM feed_items WHERE md5 = ANY(%b::text[])", [list(articles)]
    )
    return {row["md5"]: _Known(row["feed_id"], row["content_hash"]) for row in await cursor.fetchall()}


async def _lock_outdated(connection: Connection, known: Sequence[str], changed: set[str], now: datetime) -> set[str]:
    """Lock, in order, the ledger rows that will be written: changed ones, and those not touched for a day."""
    if not known:
        return set()
    cursor = await connection.execute(
        """
        SELECT md5 FROM feed_items
        WHERE md5 = ANY(%(known)b::text[])
          AND (last_seen_at < %(now)s - %(every)s::interval OR md5 = ANY(%(changed)b::text[]))
        ORDER BY md5 FOR UPDATE
        """,
        {"known": known, "changed": sorted(changed), "now": now, "every": LAST_SEEN_EVERY},
    )
    return {row["md5"] for row in await cursor.fetchall()}


async def _insert_new(connection: Connection, articles: Sequence[_Article], now: datetime) -> list[str]:
    """Insert into ledger and pending; return the md5s that were new even against writers beside us."""
    if not articles:
        return []
    cursor = await connection.execute(
        """
        INSERT INTO feed_items (md5, feed_id, content_hash, url, first_seen_at, last_seen_at)
        SELECT md5, feed_id, content_hash, url, %(now)s, %(now)s
        FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(hash)b::text[], %(url)b::text[])
             AS item (md5, feed_id, content_hash, url)
        ON CONFLICT (md5) DO NOTHING
        RETURNING md5
        """,
        {
            "now": now,
            "md5": [a.entry.md5 for a in articles],
            "feed_id": [a.feed_id for a in articles],
            "hash": [a.entry.content_hash for a in articles],
            "url": [a.entry.url for a in articles],
        },
    )
    inserted = {row["md5"] for row in await cursor.fetchall()}
    await _insert_pending(connection, [a for a in articles if a.entry.md5 in inserted], now)
    return sorted(inserted)


async def _insert_pending(connection: Connection, articles: Sequence[_Article], now: datetime) -> None:
    if not articles:
        return
    await connection.execute(
        """
        INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, content_quality, content_hash,
            published_at, updated_at, author, categories, enclosures, language, flags, created_at)
        SELECT md5, feed_id, entry_id, url, title, body, content_quality, content_hash, published_at, updated_at,
            author, ARRAY(SELECT jsonb_array_elements_text(categories::jsonb)), enclosures::jsonb, language,
            ARRAY(SELECT jsonb_array_elements_text(flags::jsonb)), %(now)s
        FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(entry_id)b::text[], %(url)b::text[], %(title)b::text[],
            %(body)b::text[], %(content_quality)b::text[], %(content_hash)b::text[], %(published_at)b::timestamptz[],
            %(updated_at)b::timestamptz[], %(author)b::text[], %(categories)b::text[], %(enclosures)b::text[],
            %(language)b::text[], %(flags)b::text[])
            AS article (md5, feed_id, entry_id, url, title, body, content_quality, content_hash, published_at,
                updated_at, author, categories, enclosures, language, flags)
        ON CONFLICT (md5) DO NOTHING
        """,
        {"now": now, "feed_id": [a.feed_id for a in articles], **_columns([a.entry for a in articles])},
    )


def _columns(entries: Sequence[Entry]) -> dict[str, list[object]]:
    """Return the entries column by column. Lists travel as JSON, since unnest would flatten an array of arrays."""
    plain = ("md5", "entry_id", "url", "title", "body", "content_quality", "content_hash", "published_at")
    more = ("updated_at", "author", "language")
    columns: dict[str, list[object]] = {name: [getattr(e, name) for e in entries] for name in (*plain, *more)}
    columns["categories"] = [json.dumps(e.categories) for e in entries]
    columns["flags"] = [json.dumps(e.flags) for e in entries]
    columns["enclosures"] = [json.dumps([item.model_dump() for item in e.enclosures]) for e in entries]
    return columns


async def _update_changed(connection: Connection, articles: Sequence[_Article]) -> int:
    """Bring changed articles up to date where they are still pending; return how many changes counted."""
    if not articles:
        return 0
    by_md5 = {a.entry.md5: a for a in articles}
    cursor = await connection.execute(
        """
        UPDATE feed_items SET content_hash = change.hash, updates = updates + 1
        FROM unnest(%(md5)b::text[], %(hash)b::text[]) AS change (md5, hash)
        WHERE feed_items.md5 = change.md5 AND updates < %(most)s
        RETURNING feed_items.md5, updates
        """,
        {
            "most": MAX_UPDATES,
            "md5": list(by_md5),
            "hash": [a.entry.content_hash for a in by_md5.values()],
        },
    )
    revisions: dict[str, int] = {row["md5"]: row["updates"] for row in await cursor.fetchall()}
    counted = [(by_md5[md5].entry, revisions[md5]) for md5 in sorted(revisions)]
    async with connection.cursor() as updates:
        # A lease goes on: two consumers with two texts of one article would race. The ack of the old text sees that
        # content_hash is another, and leaves the row. What failed with the old text may work with the new one.
        await updates.executemany(
            """
            UPDATE pending_articles
            SET body = %s, content_quality = %s, content_hash = %s, updated_at = %s, revision = %s,
                retry_count = 0, expiries = 0
            WHERE md5 = %s
            """,
            [
                (entry.body, entry.content_quality, entry.content_hash, entry.updated_at, revision, entry.md5)
                for entry, revision in counted
            ],
        )
    return len(counted)


async def _touch(connection: Connection, md5s: Sequence[str], now: datetime) -> None:
    if not md5s:
        return
    await connection.execute("UPDATE feed_items SET last_seen_at = %s WHERE md5 = ANY(%b::text[])", [now, md5s])


async def _log(connection: Connection, batch: Sequence[FeedFetched], news: Mapping[UUID, News]) -> None:
    async with connection.cursor() as cursor:
        await cursor.executemany(
            """
            INSERT INTO feed_fetch_log (result_id, feed_id, queued_at, started_at, elapsed_seconds, ok, outcome, final,
                attempt, status, items_seen, items_new, wire_bytes, decoded_bytes, tier, error_class, error)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
            """,
            [
                (
                    f.result_id,
                    f.feed_id,
                    f.queued_at,
                    f.started_at,
                    f.elapsed_seconds,
                    f.outcome.is_success,
                    f.outcome.value,
                    f.final,
                    f.attempt,
                    f.status,
                    len(f.entries),
                    news[f.result_id].count,
                    f.wire_bytes,
                    f.decoded_bytes,
                    f.tier,
                    f.error_class,
                    f.error,
                )
                for f in batch
            ],
        )


async def _note_throttles(connection: Connection, batch: Sequence[FeedFetched], proxy_hosts: frozenset[str]) -> None:
    """Remember hosts that asked to be left alone: the fetchers know it too, but forget it when they restart."""
    until: dict[str, datetime] = {}
    for fetched in batch:
        if fetched.status == 429 and fetched.not_before is not None:
            group = politeness_group(fetched.final_url or fetched.url, proxy_hosts)
            until[group] = max(until.get(group, fetched.not_before), fetched.not_before)
    if not until:
        return
    await connection.execute(
        """
        DELETE FROM throttled_groups WHERE politeness_group IN (
            SELECT politeness_group FROM throttled_groups WHERE until < now() FOR UPDATE SKIP LOCKED
        )
        """
    )
    await connection.execute(
        """
        INSERT INTO throttled_groups (politeness_group, until)
        SELECT * FROM unnest(%b::text[], %b::timestamptz[]) AS asked (politeness_group, until) ORDER BY 1
        ON CONFLICT (politeness_group) DO UPDATE SET until = greatest(throttled_groups.until, excluded.until)
        """,
        [list(until), list(until.values())],
    )


async def _advance_feeds(
    connection: Connection,
    feeds: Mapping[int, FeedState],
    batch: Sequence[FeedFetched],
    news: Mapping[UUID, News],
    now: datetime,
    rules: Rules,
    proxy_hosts: frozenset[str],
) -> Counter[str]:
    after = dict(feeds)
    claims: Counter[str] = Counter()
    for fetched in batch:
        if end := _end_of_claim(after[fetched.feed_id], fetched):
            claims[end] += 1
        after[fetched.feed_id] = advance(
            after[fetched.feed_id], fetched, news=news[fetched.result_id], now=now, rules=rules
        )
    changed = [state for id_, state in after.items() if state != feeds[id_]]
    moved = [state for state in changed if state.url != feeds[state.id].url]
    assignments = sql.SQL(", ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name))
        for name in _STATE_COLUMNS
        if name not in {"id", "url"}
    )
    async with connection.cursor() as cursor:
        await cursor.executemany(
            sql.SQL("UPDATE feeds SET {} WHERE id = %(id)s").format(assignments),
            [vars(state) | {"pace": Jsonb(write_pace(state.pace))} for state in changed],
        )
    for state in moved:
        await _move(connection, state, politeness_group(state.url, proxy_hosts))
    return claims


def _end_of_claim(feed: FeedState, fetched: FeedFetched) -> str | None:
    """Return how this result ends the claim that it belongs to; None if the job comes back."""
    if feed.claim_id != fetched.claim_id:
        return "late"
    if not fetched.final:
        return None
    if not fetched.outcome.is_attempt:
        return "dropped"
    return "completed" if fetched.outcome.is_success else "failed"


async def _move(connection: Connection, feed: FeedState, group: str) -> None:
    """Give a feed its new URL. If another feed has it and is polled, this one is a duplicate and is fetched no more."""
    cursor = await connection.execute(
        """
        UPDATE feeds SET url = %(url)s, politeness_group = %(group)s
        WHERE id = %(id)s AND NOT EXISTS (SELECT 1 FROM feeds WHERE url = %(url)s)
        """,
        {"id": feed.id, "url": feed.url, "group": group},
    )
    if cursor.rowcount:
        return
    cursor = await connection.execute(
        """
        UPDATE feeds
        SET enabled = false,
            disabled_reason = left(format('duplicate: moved for good to the URL of feed %%s', other.id), 500)
        FROM (SELECT id FROM feeds WHERE url = %(url)s AND enabled) AS other
        WHERE feeds.id = %(id)s AND feeds.id <> other.id
        RETURNING disabled_reason
        """,
        {"id": feed.id, "url": feed.url},
    )
    if row := await cursor.fetchone():
        log.warning("feed disabled: %s", row["disabled_reason"], extra={"feed_id": feed.id})
