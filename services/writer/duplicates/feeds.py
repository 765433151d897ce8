"""Feeds that bring what another feed of the registry brings: they lead to the same URL, or list the same articles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from services.writer.article import Article
from services.writer.articles.rows import Ledger
from services.writer.schedule.feed_state import FeedState
from shared.database.postgres import Connection
from shared.wire.outcomes import Outcome
from shared.wire.results import FeedFetched

LEAST_ENTRIES = 5
"""A feed that lists fewer is not compared: two feeds may well share a few articles."""
SHARE = 0.9
"""So large a part of its articles came first from the other feed."""


class Listed(Protocol):
    """A result, and the names of the articles that its entries are."""

    @property
    def fetched(self) -> FeedFetched:
        """The result."""

    @property
    def names(self) -> Sequence[str]:
        """The names."""


async def find_original_feeds(
    connection: Connection,
    results: Iterable[Listed],
    ledger: Ledger,
    articles: Mapping[str, Article],
    feeds: Mapping[int, FeedState],
) -> dict[int, int | None]:
    """Return by feed which other feed it is a duplicate of, or None; only of feeds of which the results tell it.

    Args:
        connection: in the writer's transaction, with the articles written.
        results: of the batch.
        ledger: the rows of their articles.
        articles: these articles, by name.
        feeds: locked, as they were before.
    """
    documents = [result for result in results if result.fetched.outcome is Outcome.FETCHED]
    read = [result for result in documents if result.fetched.claim_id == feeds[result.fetched.feed_id].claim_id]
    found = await _by_articles(connection, read, ledger, articles) | await _by_url(connection, read, feeds)
    return await _without_circles(connection, found, read, feeds)


async def _by_articles(
    connection: Connection, read: Sequence[Listed], ledger: Ledger, articles: Mapping[str, Article]
) -> dict[int, int | None]:
    """Return the originals of feeds that were read in full: the ledger says which feed brought an article first."""
    whole = [result for result in read if not result.fetched.known and len(result.names) >= LEAST_ENTRIES]
    if not whole:
        return {}
    own = {name for result in whole for name in _possible_copies(result, ledger, articles)}
    first = await _first_feeds(connection, own) if own else {}
    found: dict[int, int | None] = {}
    for result in whole:
        feed_id = result.fetched.feed_id
        names = set(result.names)
        brought = Counter(first.get(name, ledger.rows[name].feed_id) for name in names)
        del brought[feed_id]
        other, count = next(iter(brought.most_common(1)), (None, 0))
        found[feed_id] = other if count >= SHARE * len(names) else None
    return found


def _possible_copies(result: Listed, ledger: Ledger, articles: Mapping[str, Article]) -> set[str]:
    """Return the feed's own articles, which may repeat another feed's; none if too many are certainly new."""
    names = set(result.names)
    own = {name for name in names if ledger.rows[name].feed_id == result.fetched.feed_id}
    original = [name for name in own - ledger.stored.keys() if articles[name].duplicate_kind != "address"]
    return own if len(original) <= (1 - SHARE) * len(names) else set()


async def _first_feeds(connection: Connection, names: Iterable[str]) -> dict[str, int]:
    """Return of articles that came before under another address by whom they came first."""
    cursor = await connection.execute(
        """
        SELECT item.md5, original.feed_id FROM feed_items AS item
        JOIN feed_items AS original ON original.md5 = item.duplicate_of
        WHERE item.md5 = ANY(%b::text[]) AND coalesce(item.duplicate_kind, 'address') = 'address'
            AND original.feed_id <> item.feed_id
        """,
        [list(names)],
    )
    return {row["md5"]: row["feed_id"] for row in await cursor.fetchall()}


async def _by_url(
    connection: Connection, read: Sequence[Listed], feeds: Mapping[int, FeedState]
) -> dict[int, int | None]:
    """Return the originals of feeds that were redirected to another feed's URL, or where an older feed leads.

    What a server gives to a login or a header may differ from what others get.
    """
    urls = {
        result.fetched.feed_id: result.fetched.final_url
        for result in read
        if result.fetched.final_url not in {None, result.fetched.url}
        and not feeds[result.fetched.feed_id].has_own_headers
    }
    if not urls:
        return {}
    cursor = await connection.execute(
        """
        SELECT led.id, min(other.id) AS original
        FROM unnest(%b::bigint[], %b::text[]) AS led (id, final_url)
        CROSS JOIN LATERAL (
            SELECT feeds.id FROM feeds WHERE feeds.url = led.final_url AND enabled AND feeds.id <> led.id
            UNION ALL
            SELECT feeds.id FROM feeds
            WHERE validators_url = led.final_url AND validators_url <> feeds.url AND enabled AND feeds.id < led.id
        ) AS other
        GROUP BY led.id
        """,
        [list(urls), list(urls.values())],
    )
    return {row["id"]: row["original"] for row in await cursor.fetchall()}


async def _without_circles(
    connection: Connection, found: dict[int, int | None], read: Sequence[Listed], feeds: Mapping[int, FeedState]
) -> dict[int, int | None]:
    """Return what was found, but of two feeds that are duplicates of each other only one is.

    It is the one that is redirected; of equals, the younger one. A feed that is not of this batch is told so here.
    """
    others = {original for original in found.values() if original is not None}
    if not others:
        return found
    cursor = await connection.execute(
        """
        SELECT id, duplicate_of, coalesce(validators_url <> url, false) AS is_led FROM feeds WHERE id = ANY(%b)
        """,
        [list(others)],
    )
    rows = {row["id"]: row for row in await cursor.fetchall()}
    led = {name for name, row in rows.items() if row["is_led"]}
    for result in (result.fetched for result in read):
        (led.add if result.final_url not in {None, result.url} else led.discard)(result.feed_id)
    kept, wrong = dict(found), []
    for feed, original in found.items():
        if original is None or kept.get(original, rows[original]["duplicate_of"]) != feed:
            continue
        if (feed in led, feed) < (original in led, original):
            kept[feed] = None
        elif original in feeds:
            kept[original] = None
        else:
            wrong.append(original)
    if wrong:  # who writes one of them just now finds the same
        await connection.execute(
            """
            UPDATE feeds SET duplicate_of = NULL
            WHERE id IN (SELECT id FROM feeds WHERE id = ANY(%b) FOR UPDATE SKIP LOCKED)
            """,
            [wrong],
        )
    return kept
