"""The writer's SQL for `feed_listings`: which entries of a feed need not be read again.

A feed's row is written in the transaction that has locked the feed and commits the articles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from services.writer.articles.identity import Document
from services.writer.articles.listing import KnownEntry, Listing, match
from services.writer.articles.relisting import are_apart
from services.writer.articles.rows import Ledger
from services.writer.ledger import read_named
from shared.database.postgres import Connection
from shared.wire.results import FeedFetched


async def read_listings(connection: Connection, results: Iterable[FeedFetched]) -> dict[int, Listing]:
    """Return by feed the listings that the results need: of those whose documents have known entries."""
    feeds = {fetched.feed_id for fetched in results if fetched.known}
    if not feeds:
        return {}
    cursor = await connection.execute(
        "SELECT feed_id, digests, names, addresses, full_at FROM feed_listings WHERE feed_id = ANY(%b)", [list(feeds)]
    )
    return {row.pop("feed_id"): Listing.unpack(**row) for row in await cursor.fetchall()}


async def add_known(
    connection: Connection,
    results: Sequence[FeedFetched],
    documents: Sequence[Document],
    listings: Mapping[int, Listing],
    ledger: Ledger,
) -> list[Document]:
    """Return the documents with their known entries, and with the rows of these where they matter."""
    known = [match(listings.get(fetched.feed_id), fetched.known) for fetched in results]
    whole = [replace(document, known=known) for document, known in zip(documents, known, strict=True)]
    entangled = {at for at, document in enumerate(whole) if document.known and not are_apart(ledger, document)}
    if not entangled:
        return whole
    articles = await read_named(connection, {entry.listed.name for at in entangled for entry in whole[at].known})

    def with_row(known: KnownEntry, feed_id: int) -> KnownEntry:
        if known.listed.name not in articles:
            return KnownEntry.forgotten(known.listed.digest)
        row, url = articles[known.listed.name]
        return KnownEntry.of_row(known.listed, row, url, feed_id)

    return [
        replace(document, known=[with_row(known, document.feed_id) for known in document.known])
        if at in entangled
        else document
        for at, document in enumerate(whole)
    ]


@dataclass(frozen=True)
class Relisting:
    """What becomes of the listings of a batch's feeds."""

    written: Mapping[int, Listing]
    """By feed: its new listing."""
    ended: Sequence[int]
    """Feeds whose documents have no entry that can be recognised."""
    doubted: Sequence[int]
    """Feeds that have to be read in full next time."""


async def write_listings(connection: Connection, relisting: Relisting) -> None:
    """Write what changes. The feeds are locked."""
    if relisting.ended or relisting.doubted:
        await connection.execute(
            """
            WITH ended AS (DELETE FROM feed_listings WHERE feed_id = ANY(%b))
            UPDATE feed_listings SET full_at = NULL WHERE feed_id = ANY(%b) AND full_at IS NOT NULL
            """,
            [relisting.ended, relisting.doubted],
        )
    if not relisting.written:
        return
    packed = [listing.pack() for listing in relisting.written.values()]
    await connection.execute(
        """
        INSERT INTO feed_listings (feed_id, digests, names, addresses, full_at)
        SELECT * FROM unnest(%b::bigint[], %b::bytea[], %b::bytea[], %b::bytea[], %b::timestamptz[])
        ON CONFLICT (feed_id) DO UPDATE SET (digests, names, addresses, full_at)
            = (excluded.digests, excluded.names, excluded.addresses, excluded.full_at)
        """,
        [
            list(relisting.written),
            *(list(column) for column in zip(*packed, strict=True)),
            [listing.full_at for listing in relisting.written.values()],
        ],
    )
