"""The writer's transaction: articles, ledger, feed state and fetch log of a batch.

Every transaction locks rows in one order: feeds by id, then ledger, pending and dead articles by md5; within a table
new rows first. So any number of writers, consumers and operators can work side by side without a deadlock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from services.writer import ledger as items
from services.writer import pending
from services.writer.article import Article
from services.writer.articles.canonical import duplicate_keys
from services.writer.articles.identity import Document, identify
from services.writer.articles.listing import Listing, names_of
from services.writer.articles.relisting import relist
from services.writer.articles.rows import Ledger, Row
from services.writer.duplicates.feeds import find_original_feeds
from services.writer.duplicates.sketches import collapse, find_similar, insert_sketches
from services.writer.feed_store import advance_feeds, find_logged, lock_feeds, log_attempts, note_throttles
from services.writer.freshness.rows import add_arrivals
from services.writer.freshness.rules import Arrival, judge_all
from services.writer.listings import Relisting, add_known, read_listings, write_listings
from services.writer.schedule.feed_state import FeedState, NewItems, Rules, sure_dates
from shared.database.postgres import Connection
from shared.wire.enrichment import UNDETERMINED
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

Duplicates = Literal["flag", "drop", "off"]
"""What to do with an article that came before, under another address or with nearly the same text: see
FEEDMILL_DUPLICATES."""


@dataclass(frozen=True)
class Policy:
    """What to do with duplicates and changed articles."""

    duplicates: Duplicates = "flag"
    duplicate_days: float = 7.0
    """For how long near-duplicates of an article are looked for."""
    requeue_updates: bool = False
    """Whether a drained article is pending again when its text changes."""


@dataclass
class Reading:
    """A result and its document."""

    fetched: FeedFetched
    document: Document
    names: Sequence[str] = ()
    """Of its entries' articles."""
    listed: Set[str] = frozenset()
    """The names of all articles that the document lists, those of known entries among them."""


@dataclass(frozen=True)
class Changes:
    """What was written of a batch's articles."""

    new: set[str]
    """The names of new articles."""
    updated: set[str]
    """The names of articles whose text or title had changed."""
    duplicates: int
    unsure: set[str]
    """The names of articles whose rows another process has changed or deleted meanwhile."""


@dataclass(frozen=True)
class Written:
    """What a batch has changed."""

    new: int
    """Unknown articles, duplicates included."""
    updated: int
    """Articles whose text or title had changed."""
    repeated: int
    """Articles that were known unchanged."""
    duplicates: int = 0
    """New articles that came before, under another address or with nearly the same text."""
    claims: Counter[str] = field(default_factory=Counter, compare=False)
    """Claims that ended: `completed`, `failed`, `dropped` (stale job); `late`: results whose claim was over before."""
    readings: Sequence[Reading] = field(default=(), compare=False)
    """The results that were not written before."""
    articles: Mapping[str, Article] = field(default_factory=dict, compare=False)
    """Theirs, by name."""
    changes: Changes | None = field(default=None, compare=False)
    arrivals: Sequence[Arrival] = field(default=(), compare=False)
    """How long the new articles took."""

    def duplicate_articles(self) -> Iterator[Article]:
        """Yield the new articles that came before."""
        new = self.changes.new if self.changes else ()
        return (self.articles[name] for name in new if self.articles[name].duplicate_of is not None)


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

    Results of feeds that were removed meanwhile are dropped.
    """
    feeds = await lock_feeds(connection, {fetched.feed_id for fetched in batch})
    written = await find_logged(connection, batch)
    unwritten = {f.result_id: f for f in batch if f.result_id not in written and f.feed_id in feeds}
    fresh = _in_order(unwritten.values(), feeds, now)
    listings = await read_listings(connection, fresh)
    documents = [Document.of(fetched.feed_id, fetched.entries) for fetched in fresh]
    ledger = await items.read_ledger(connection, documents, now)
    documents = await add_known(connection, fresh, documents, listings, ledger)
    readings = [Reading(*both) for both in zip(fresh, documents, strict=True)]
    articles = _find_articles(ledger, readings, feeds)
    changes = await _write_articles(connection, readings, ledger, articles, now, policy or Policy())
    await write_listings(connection, _relist(readings, feeds, listings, ledger, changes.unsure, now))

    new = [articles[name] for name in sorted(changes.new)]
    arrivals = judge_all(fresh, feeds, new, now)
    await add_arrivals(connection, arrivals, now)
    new_items = _count_new(fresh, new)
    await log_attempts(connection, fresh, new_items, now)
    await note_throttles(connection, fresh, proxy_hosts)
    originals = await find_original_feeds(connection, readings, ledger, articles, feeds)
    claims = await advance_feeds(connection, feeds, fresh, new_items, originals, now, rules, proxy_hosts)
    listed = {name for reading in readings for name in reading.listed}
    repeated = len(listed) - len(changes.new) - len(changes.updated)
    counts = len(changes.new), len(changes.updated), repeated, changes.duplicates
    return Written(*counts, claims, readings, articles, changes, arrivals)


def _in_order(results: Iterable[FeedFetched], feeds: Mapping[int, FeedState], now: datetime) -> list[FeedFetched]:
    """Return the results in the order in which they were fetched.

    The clocks of two fetchers may differ. But the job of a feed's current claim was issued after all its other jobs.
    """
    return sorted(results, key=lambda f: (f.claim_id == feeds[f.feed_id].claim_id, min(f.started_at, now)))


def _find_articles(ledger: Ledger, readings: Iterable[Reading], feeds: Mapping[int, FeedState]) -> dict[str, Article]:
    """Return the batch's articles by name, each with the newest entry of the feed that owns it.

    Without such an entry (the owner does not list it here, or only in an outdated document) any entry stands for it.
    Updates `ledger`, and gives the readings the names of their entries' articles.
    """
    articles: dict[str, Article] = {}
    for number, reading in enumerate(readings):
        fetched = reading.fetched
        is_outdated = _is_outdated(feeds[fetched.feed_id], fetched)
        reading.names = identify(ledger, reading.document)
        seen = names_of(reading.document.known)
        for place, name in enumerate(reading.names):
            if name in seen:
                continue  # if a document has an article twice, the known entry counts, else the first one
            seen.add(name)
            entry, row, before = fetched.entries[place], ledger.rows[name], articles.get(name)
            brought_by = before.brought_by if before else number
            article = Article(name, fetched.feed_id, entry, number, place, brought_by)
            if row.feed_id == fetched.feed_id and not (is_outdated and name in ledger.stored):
                ledger.put(row.show(entry))
                articles[name] = article
            else:
                articles.setdefault(name, article)
        reading.listed = seen
    return articles


def _is_outdated(feed: FeedState, fetched: FeedFetched) -> bool:
    """Whether a result comes late, after a document that was fetched later was written."""
    is_late = feed.claim_id != fetched.claim_id
    return is_late and feed.last_read_at is not None and fetched.started_at < feed.last_read_at


async def _write_articles(
    connection: Connection,
    readings: Sequence[Reading],
    ledger: Ledger,
    articles: Mapping[str, Article],
    now: datetime,
    policy: Policy,
) -> Changes:
    """Write ledger and articles."""
    unknown = [article for name, article in articles.items() if name not in ledger.stored]
    for article in unknown:
        article.key = ledger.rows[article.name].key
    if policy.duplicates != "off":
        _set_canonical(readings, unknown)
    await items.find_originals(connection, unknown)
    drawn = []
    if policy.duplicates != "off":
        drawn = await find_similar(connection, unknown, now, policy.duplicate_days)
        collapse(unknown)
    unknown.sort(key=lambda article: article.name)
    new = await items.insert_items(connection, unknown, now)

    rows = [(ledger.stored[name], ledger.rows[name]) for name in sorted(articles.keys() & ledger.stored.keys())]
    keys = {row.name: row.key for before, row in rows if row.key is not None and row.key != before.key}
    changed = {row.name for before, row in rows if _shown(row) != _shown(before)}
    must = changed | keys.keys() | {row.name for _, row in rows if row.is_due}
    locked = await items.note_seen(connection, sorted(must), ledger.newer_keys | keys, now)
    updated = await items.update_items(connection, [articles[name] for name in sorted(changed & locked)])

    offered = new | {article.name for article in updated} if policy.requeue_updates else new
    if policy.duplicates == "drop":
        offered = {name for name in offered if not articles[name].duplicate_of}
    offers = [articles[name] for name in sorted(offered)]
    await pending.insert_pending(connection, offers, now, update=policy.requeue_updates)
    not_offered = [article for article in updated if not policy.requeue_updates or article.name not in offered]
    await pending.update_pending(connection, not_offered)
    await pending.forget_dead(connection, sorted(offered - new))
    await insert_sketches(connection, [each for each in drawn if each.article.name in new], now)
    unsure = {article.name for article in unknown} - new | must - locked
    renewed = {article.name for article in updated}
    return Changes(new, renewed, sum(articles[name].duplicate_of is not None for name in new), unsure)


def _shown(row: Row) -> tuple[str, str]:
    return row.title_md5, row.content_hash


def _set_canonical(readings: Sequence[Reading], articles: Iterable[Article]) -> None:
    """Give the articles the digest of their canonical URL, where it identifies an article.

    An article whose name is made with its id gets none: another article has its address, and is not its original.
    """
    by_result: list[dict[int, Article]] = [{} for _ in readings]
    for article in articles:
        if article.name == article.entry.md5:
            by_result[article.result][article.place] = article
    for reading, wanted in zip(readings, by_result, strict=True):
        if wanted:
            document = reading.document
            urls = [entry.url for entry in document.entries] + [known.url for known in document.known]
            for place, key in duplicate_keys(urls, wanted).items():
                wanted[place].canonical = key


def _relist(
    readings: Sequence[Reading],
    feeds: Mapping[int, FeedState],
    listings: Mapping[int, Listing],
    ledger: Ledger,
    unsure: set[str],
    now: datetime,
) -> Relisting:
    """Return what becomes of the listings. Only a feed's one reading for its present claim can make a new one."""
    written: dict[int, Listing] = {}
    ended, doubted = [], []
    documents = [reading for reading in readings if reading.fetched.outcome is Outcome.FETCHED]
    of_feed = Counter(reading.fetched.feed_id for reading in documents)
    for reading in documents:
        fetched, feed_id = reading.fetched, reading.fetched.feed_id
        before = listings.get(feed_id)
        if of_feed[feed_id] > 1 or fetched.claim_id != feeds[feed_id].claim_id:
            doubted.append(feed_id)
            continue
        after = relist(before, reading.document, reading.names, fetched.digests, ledger, unsure)
        if after is None:
            ended.append(feed_id)
        elif not fetched.known:
            written[feed_id] = replace(after, full_at=now)
        elif before is not None and after != before:
            written[feed_id] = after
    return Relisting(written, ended, doubted)


def _count_new(batch: Sequence[FeedFetched], new: Sequence[Article]) -> dict[UUID, NewItems]:
    """Return the new items of each result."""
    brought: list[list[Article]] = [[] for _ in batch]
    for article in new:
        brought[article.brought_by].append(article)
    return {fetched.result_id: _describe(own) for fetched, own in zip(batch, brought, strict=True)}


def _describe(new: Sequence[Article]) -> NewItems:
    kinds = Counter(article.duplicate_kind for article in new)
    found = [article.entry.enrichment for article in new if article.entry.enrichment]
    return NewItems(
        count=len(new),
        published=sure_dates(article.entry for article in new),
        full=sum(article.entry.content_quality == "full" for article in new),
        duplicates=sum(article.duplicate_of is not None for article in new),
        duplicates_by_title=kinds["title"],
        duplicates_by_text=kinds["text"],
        enriched=len(found),
        with_language=sum(enrichment.language not in {None, UNDETERMINED} for enrichment in found),
        with_topic=sum(enrichment.topic is not None for enrichment in found),
    )
