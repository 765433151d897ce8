"""The writer's transaction: articles, ledger, feed state and fetch log of a batch.

Whoever locks rows of several tables does it in one order: feeds by id, ledger, pending and dead articles by md5, within
a table what is new first. So any number of writers, consumers and operators side by side cannot deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.writer import ledger as items
from services.writer import pending
from services.writer.articles.article import Article
from services.writer.articles.canonical import duplicate_keys
from services.writer.articles.identity import MAX_UPDATES, Ledger, Row, identify
from services.writer.feed_store import advance_feeds, find_logged, lock_feeds, log_attempts, note_throttles
from services.writer.schedule.feed_state import FeedState, News, Rules, sure_dates
from shared.database.postgres import Connection
from shared.wire.results import Entry, FeedFetched

__all__ = ["MAX_UPDATES", "Duplicates", "Policy", "Written", "write_batch"]

Duplicates = Literal["flag", "drop", "off"]
"""What becomes of an article that came before under another address: see FEEDMILL_DUPLICATES."""


@dataclass(frozen=True)
class Policy:
    """What becomes of articles that are not simply new."""

    duplicates: Duplicates = "flag"
    requeue_updates: bool = False
    """An article that was drained is pending again when its text changes."""


@dataclass(frozen=True)
class Written:
    """What a batch came to."""

    new: int
    """Articles that nobody had seen, duplicates included."""
    updated: int
    """Articles whose text or title had changed."""
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
    unwritten = {f.result_id: f for f in batch if f.result_id not in written and f.feed_id in feeds}
    fresh = _in_order(unwritten.values(), feeds, now)
    ledger = await items.read_ledger(connection, fresh)
    articles = _find_articles(ledger, fresh, feeds)
    new, updated, duplicates = await _write_articles(connection, fresh, ledger, articles, now, policy or Policy())

    news = _news(fresh, [articles[name] for name in sorted(new)])
    await log_attempts(connection, fresh, news, now)
    await note_throttles(connection, fresh, proxy_hosts)
    claims = await advance_feeds(connection, feeds, fresh, news, now, rules, proxy_hosts)
    return Written(len(new), updated, len(articles) - len(new) - updated, duplicates, claims)


def _in_order(results: Iterable[FeedFetched], feeds: Mapping[int, FeedState], now: datetime) -> list[FeedFetched]:
    """Return the results in the order in which they were fetched.

    The clocks of two fetchers may differ. But the job of a feed's present claim was issued after all others were over.
    """
    return sorted(results, key=lambda f: (f.claim_id == feeds[f.feed_id].claim_id, min(f.started_at, now)))


def _find_articles(
    ledger: Ledger, results: Iterable[FeedFetched], feeds: Mapping[int, FeedState]
) -> dict[str, Article]:
    """Return the batch's articles by name, each with the newest entry of its owner; `ledger` is brought up to date.

    If its owner does not list it here, or only in a document that is older than one that was read, it is any entry.
    """
    articles: dict[str, Article] = {}
    for fetched in results:
        is_outdated = _is_outdated(feeds[fetched.feed_id], fetched)
        seen: set[str] = set()
        for place, name in enumerate(identify(ledger, fetched.feed_id, fetched.entries)):
            if name in seen:
                continue  # of one article twice in a document the first counts
            seen.add(name)
            entry, row, before = fetched.entries[place], ledger.rows[name], articles.get(name)
            brought_by = before.brought_by if before else fetched.result_id
            article = Article(name, entry, fetched.feed_id, fetched.result_id, place, brought_by)
            if row.feed_id == fetched.feed_id and not (is_outdated and name in ledger.stored):
                ledger.put(row.show(entry))
                articles[name] = article
            else:
                articles.setdefault(name, article)
    return articles


def _is_outdated(feed: FeedState, fetched: FeedFetched) -> bool:
    """Whether a result comes late, and a document that was fetched after it was written before."""
    is_late = feed.claim_id != fetched.claim_id
    return is_late and feed.last_read_at is not None and fetched.started_at < feed.last_read_at


async def _write_articles(
    connection: Connection,
    results: Sequence[FeedFetched],
    ledger: Ledger,
    articles: Mapping[str, Article],
    now: datetime,
    policy: Policy,
) -> tuple[set[str], int, int]:
    """Write ledger and articles; return the names of new ones, and how many were updated and are duplicates."""
    unknown = [article for name, article in articles.items() if name not in ledger.stored]
    canonical = {} if policy.duplicates == "off" else _canonical(results, unknown)
    originals = await items.find_originals(connection, unknown, canonical)
    unknown.sort(key=lambda article: article.name)
    new = await items.insert_items(connection, unknown, ledger, canonical, originals, now)

    rows = [(ledger.stored[name], ledger.rows[name]) for name in sorted(articles.keys() & ledger.stored.keys())]
    keys = {row.name: row.key for before, row in rows if row.key is not None and row.key != before.key}
    changed = {row.name for before, row in rows if _look(row) != _look(before)}
    names, must = [row.name for _, row in rows], changed | keys.keys()
    locked = await items.note_seen(connection, names, ledger.newer_keys | keys, must, now)
    changes = [articles[name] for name in sorted(changed & locked)]
    revisions, known_originals = await items.update_items(connection, changes)
    changes = [article for article in changes if article.name in revisions]

    originals |= known_originals
    requeue = policy.requeue_updates
    offered = new | revisions.keys() if requeue else new
    if policy.duplicates == "drop":
        offered -= originals.keys()
    offers = [articles[name] for name in sorted(offered)]
    await pending.insert_pending(connection, offers, originals, revisions, now, update=requeue)
    await pending.update_pending(connection, [a for a in changes if not requeue or a.name not in offered], revisions)
    await pending.forget_dead(connection, sorted(offered - new))
    return new, len(revisions), len(originals.keys() & new)


def _look(row: Row) -> tuple[str, str]:
    return row.title_md5, row.content_hash


def _canonical(batch: Sequence[FeedFetched], articles: Iterable[Article]) -> dict[str, UUID]:
    """Return by name what each of the articles has in common with itself under other addresses, if that can be told.

    One that was told apart from another one with its very address is no duplicate of that.
    """
    wanted: dict[UUID, dict[int, str]] = {}
    for article in articles:
        if article.name == article.entry.md5:
            wanted.setdefault(article.result_id, {})[article.place] = article.name
    keys: dict[str, UUID] = {}
    for fetched in batch:
        if places := wanted.get(fetched.result_id):
            found = duplicate_keys([entry.url for entry in fetched.entries], places)
            keys |= {places[place]: key for place, key in found.items()}
    return keys


def _news(batch: Sequence[FeedFetched], new: Sequence[Article]) -> dict[UUID, News]:
    """Return what was new in each result."""
    entries: dict[UUID, list[Entry]] = {fetched.result_id: [] for fetched in batch}
    for article in new:
        entries[article.brought_by].append(article.entry)
    return {id_: News(len(own), sure_dates(own)) for id_, own in entries.items()}
