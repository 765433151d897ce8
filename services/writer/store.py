"""The writer's SQL: one transaction for articles, ledger, feed state and fetch log.

Locks are taken in one order by every writer (feeds by id, then articles by md5), so that any number of them side by
side cannot deadlock.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.writer.canonical import duplicate_keys
from services.writer.feed_state import News, Rules, sure_dates
from services.writer.feed_store import advance_feeds, find_logged, lock_feeds, log_attempts, note_throttles
from shared.messages import Entry, FeedFetched
from shared.postgres import Connection

Duplicates = Literal["flag", "drop", "off"]
"""What becomes of an article that came before under another address: see FEEDMILL_DUPLICATES."""


@dataclass(frozen=True)
class Policy:
    """What becomes of articles that are not simply new."""

    duplicates: Duplicates = "flag"
    requeue_updates: bool = False
    """An article that was drained is pending again when its text changes."""


MAX_UPDATES = 24
"""A feed that prints the time into its entries changes them for ever; after so many updates they count as unchanged."""

ROWS_A_STATEMENT = 500
"""Of articles: more gains nothing (measured), and memory grows with it on both sides."""

LAST_SEEN_EVERY = "1 day"
"""`last_seen_at` is refreshed at most this often per article: most polls repeat what is known."""


@dataclass(frozen=True)
class Written:
    """What a batch came to."""

    new: int
    """Articles that nobody had seen, duplicates included."""
    updated: int
    """Articles whose text had changed."""
    repeated: int
    """Articles that were known as they are."""
    duplicates: int = 0
    """Of the new ones, those that are another article under another address."""
    claims: Counter[str] = field(default_factory=Counter, compare=False)
    """Claims that ended: `completed`, `failed`, `dropped` (stale job); `late`: results whose claim was over before."""


async def write_batch(
    connection: Connection,
    batch: Sequence[FeedFetched],
    *,
    now: datetime,
    rules: Rules,
    proxy_hosts: frozenset[str],
    policy: Policy | None = None,
) -> Written:
    """Write every result of `batch`. Writing the same result again changes nothing.

    Results of feeds that were removed meanwhile are dropped: nobody asks for them any more.
    """
    feeds = await lock_feeds(connection, {fetched.feed_id for fetched in batch})
    written = await find_logged(connection, batch)
    fresh = _unique(fetched for fetched in batch if fetched.result_id not in written and fetched.feed_id in feeds)
    articles = _articles(fresh)
    known = await _known_items(connection, articles)
    unknown = [article for md5, article in articles.items() if md5 not in known]
    policy = policy or Policy()
    keys = {} if policy.duplicates == "off" else _canonical(fresh, unknown)
    originals = await _find_originals(connection, unknown, keys)
    unknown.sort(key=lambda article: article.entry.md5)
    new: list[str] = []
    for chunk in _chunks(unknown):
        new += await _insert_new(connection, chunk, keys, originals, now, drop=policy.duplicates == "drop")
    changed = {md5 for md5, item in known.items() if item.is_changed_by(articles[md5])}
    locked = await _lock_outdated(connection, sorted(known), changed, now)
    changes = [articles[md5] for md5 in sorted(changed & locked)]
    updated = await _update_changed(connection, changes, now, policy)
    await _touch(connection, sorted(locked), now)

    news = _news(fresh, [articles[md5] for md5 in new])
    await log_attempts(connection, fresh, news)
    await note_throttles(connection, fresh, proxy_hosts)
    claims = await advance_feeds(connection, feeds, fresh, news, now, rules, proxy_hosts)
    return Written(
        new=len(new),
        updated=updated,
        repeated=len(articles) - len(new) - updated,
        duplicates=len(originals.keys() & new),
        claims=claims,
    )


def _chunks(articles: Sequence[_Article]) -> Iterator[Sequence[_Article]]:
    """Yield the articles some at a time: a result may hold thousands, and their texts stand in one statement."""
    for first in range(0, len(articles), ROWS_A_STATEMENT):
        yield articles[first : first + ROWS_A_STATEMENT]


@dataclass(frozen=True)
class _Article:
    entry: Entry
    feed_id: int
    result_id: UUID
    place: int
    """Among the entries of its result."""


def _unique(results: Iterable[FeedFetched]) -> list[FeedFetched]:
    """Drop the second copy of a result that was delivered twice into one batch."""
    return list({fetched.result_id: fetched for fetched in results}.values())


def _articles(batch: Sequence[FeedFetched]) -> dict[str, _Article]:
    """Return the batch's articles by md5; of several with one md5 the first counts."""
    articles: dict[str, _Article] = {}
    for fetched in batch:
        for place, entry in enumerate(fetched.entries):
            articles.setdefault(entry.md5, _Article(entry, fetched.feed_id, fetched.result_id, place))
    return articles


def _canonical(batch: Sequence[FeedFetched], articles: Iterable[_Article]) -> dict[str, UUID]:
    """Return by md5 what each of the articles has in common with itself under other addresses, if that can be told."""
    wanted: dict[UUID, dict[int, str]] = {}
    for article in articles:
        wanted.setdefault(article.result_id, {})[article.place] = article.entry.md5
    keys: dict[str, UUID] = {}
    for fetched in batch:
        if places := wanted.get(fetched.result_id):
            found = duplicate_keys([entry.url for entry in fetched.entries], places)
            keys |= {places[place]: key for place, key in found.items()}
    return keys


def _news(batch: Sequence[FeedFetched], new: Sequence[_Article]) -> dict[UUID, News]:
    """Return what was new in each result."""
    entries: dict[UUID, list[Entry]] = {fetched.result_id: [] for fetched in batch}
    for article in new:
        entries[article.result_id].append(article.entry)
    return {id_: News(len(own), sure_dates(own)) for id_, own in entries.items()}


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


async def _find_originals(
    connection: Connection, articles: Sequence[_Article], keys: Mapping[str, UUID]
) -> dict[str, str]:
    """Return which of the articles are duplicates, and of which: the one that was seen first, or is first here."""
    if not keys:
        return {}
    cursor = await connection.execute(
        """
        SELECT DISTINCT ON (canonical) canonical, md5 FROM feed_items
        WHERE canonical = ANY(%b::uuid[]) AND duplicate_of IS NULL
        ORDER BY canonical, first_seen_at, md5
        """,
        [list(set(keys.values()))],
    )
    first: dict[UUID, str] = {row["canonical"]: row["md5"] for row in await cursor.fetchall()}
    found: dict[str, str] = {}
    for article in articles:
        md5 = article.entry.md5
        if md5 in keys and (original := first.setdefault(keys[md5], md5)) != md5:
            found[md5] = original
    return found


async def _insert_new(
    connection: Connection,
    articles: Sequence[_Article],
    keys: Mapping[str, UUID],
    originals: Mapping[str, str],
    now: datetime,
    *,
    drop: bool,
) -> list[str]:
    """Insert into ledger and pending; return the md5s that were new even against writers beside us.

    Args:
        connection: in the writer's transaction.
        articles: none of which was known, by md5.
        keys: what they have in common with themselves under other addresses.
        originals: of those that are duplicates.
        now: when they were seen.
        drop: keep duplicates in the ledger only.
    """
    if not articles:
        return []
    cursor = await connection.execute(
        """
        INSERT INTO feed_items (md5, feed_id, content_hash, url, canonical, duplicate_of, first_seen_at, last_seen_at)
        SELECT md5, feed_id, content_hash, url, canonical, duplicate_of, %(now)s, %(now)s
        FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(hash)b::text[], %(url)b::text[], %(canonical)b::uuid[],
            %(original)b::text[]) AS item (md5, feed_id, content_hash, url, canonical, duplicate_of)
        ON CONFLICT (md5) DO NOTHING
        RETURNING md5
        """,
        {
            "now": now,
            "md5": [a.entry.md5 for a in articles],
            "feed_id": [a.feed_id for a in articles],
            "hash": [a.entry.content_hash for a in articles],
            "url": [a.entry.url for a in articles],
            "canonical": [keys.get(a.entry.md5) for a in articles],
            "original": [originals.get(a.entry.md5) for a in articles],
        },
    )
    inserted = {row["md5"] for row in await cursor.fetchall()}
    offered = inserted - originals.keys() if drop else inserted
    await _insert_pending(connection, [a for a in articles if a.entry.md5 in offered], originals, now)
    return sorted(inserted)


async def _insert_pending(
    connection: Connection,
    articles: Sequence[_Article],
    originals: Mapping[str, str],
    now: datetime,
    revisions: Mapping[str, int] | None = None,
) -> None:
    if not articles:
        return
    await connection.execute(
        """
        INSERT INTO pending_articles (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash,
            published_at, updated_at, author, categories, enclosures, language, flags, duplicate_of, revision,
            created_at)
        SELECT md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at, updated_at,
            author, categories::text[], enclosures::jsonb, language, flags::text[], duplicate_of, revision,
            %(now)s
        FROM unnest(%(md5)b::text[], %(feed_id)b::bigint[], %(entry_id)b::text[], %(url)b::text[], %(title)b::text[],
            %(body)b::text[], %(html)b::text[], %(content_quality)b::text[], %(content_hash)b::text[],
            %(published_at)b::timestamptz[], %(updated_at)b::timestamptz[], %(author)b::text[],
            %(categories)b::text[], %(enclosures)b::text[], %(language)b::text[], %(flags)b::text[],
            %(original)b::text[], %(revision)b::int[])
            AS article (md5, feed_id, entry_id, url, title, body, html, content_quality, content_hash, published_at,
                updated_at, author, categories, enclosures, language, flags, duplicate_of, revision)
        ON CONFLICT (md5) DO NOTHING
        """,
        {
            "now": now,
            "feed_id": [a.feed_id for a in articles],
            "original": [originals.get(a.entry.md5) for a in articles],
            "revision": [(revisions or {}).get(a.entry.md5, 0) for a in articles],
            **_columns([a.entry for a in articles]),
        },
    )


def _columns(entries: Sequence[Entry]) -> dict[str, list[object]]:
    """Return the entries column by column. Lists travel as text, since unnest would flatten an array of arrays."""
    plain = ("md5", "entry_id", "url", "title", "body", "html", "content_quality", "content_hash")
    more = ("published_at", "updated_at", "author", "language")
    columns: dict[str, list[object]] = {name: [getattr(e, name) for e in entries] for name in (*plain, *more)}
    columns["categories"] = [_array(e.categories) for e in entries]
    columns["flags"] = [_array(e.flags) for e in entries]
    columns["enclosures"] = [json.dumps([item.model_dump() for item in e.enclosures]) for e in entries]
    return columns


def _array(texts: Sequence[str]) -> str:
    """Return the texts as PostgreSQL writes an array of them."""
    quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
    return "{" + ",".join(f'"{text}"' for text in quoted) + "}"


async def _update_changed(connection: Connection, articles: Sequence[_Article], now: datetime, policy: Policy) -> int:
    """Bring changed articles up to date where they are still pending; return how many changes counted."""
    if not articles:
        return 0
    by_md5 = {a.entry.md5: a for a in articles}
    cursor = await connection.execute(
        """
        UPDATE feed_items SET content_hash = change.hash, updates = updates + 1
        FROM unnest(%(md5)b::text[], %(hash)b::text[]) AS change (md5, hash)
        WHERE feed_items.md5 = change.md5 AND updates < %(most)s
        RETURNING feed_items.md5, updates, duplicate_of
        """,
        {
            "most": MAX_UPDATES,
            "md5": list(by_md5),
            "hash": [a.entry.content_hash for a in by_md5.values()],
        },
    )
    rows = await cursor.fetchall()
    revisions: dict[str, int] = {row["md5"]: row["updates"] for row in rows}
    counted = [(by_md5[md5].entry, revisions[md5]) for md5 in sorted(revisions)]
    async with connection.cursor() as updates:
        # A lease goes on: two consumers with two texts of one article would race. The ack of the old text sees that
        # content_hash is another, and leaves the row. What failed with the old text may work with the new one.
        await updates.executemany(
            """
            UPDATE pending_articles
            SET body = %s, html = %s, content_quality = %s, content_hash = %s, updated_at = %s, revision = %s,
                retry_count = 0, expiries = 0
            WHERE md5 = %s
            """,
            [
                (e.body, e.html, e.content_quality, e.content_hash, e.updated_at, revision, e.md5)
                for e, revision in counted
            ],
        )
    if policy.requeue_updates:
        originals = {row["md5"]: row["duplicate_of"] for row in rows if row["duplicate_of"] is not None}
        offered = revisions.keys() - originals.keys() if policy.duplicates == "drop" else revisions.keys()
        await _requeue(connection, [by_md5[md5] for md5 in sorted(offered)], originals, revisions, now)
    return len(counted)


async def _requeue(
    connection: Connection,
    articles: Sequence[_Article],
    originals: Mapping[str, str],
    revisions: Mapping[str, int],
    now: datetime,
) -> None:
    """Let those of the articles be pending again that were drained, or buried, with their new text."""
    md5s = [article.entry.md5 for article in articles]
    cursor = await connection.execute("SELECT md5 FROM pending_articles WHERE md5 = ANY(%b::text[])", [md5s])
    pending = {row["md5"] for row in await cursor.fetchall()}
    drained = [article for article in articles if article.entry.md5 not in pending]
    await _insert_pending(connection, drained, originals, now, revisions)
    await connection.execute(
        "DELETE FROM dead_articles WHERE md5 = ANY(%b::text[])", [[article.entry.md5 for article in drained]]
    )


async def _touch(connection: Connection, md5s: Sequence[str], now: datetime) -> None:
    if not md5s:
        return
    await connection.execute("UPDATE feed_items SET last_seen_at = %s WHERE md5 = ANY(%b::text[])", [now, md5s])
