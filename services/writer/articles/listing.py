"""Pure: what a feed listed when it was read last, so that a fetcher need not read these entries again.

An entry is listed if reading it again would change nothing: its article is stored with just its link, title, text and
id. A later result names the listed entries that the document still has (`FeedFetched.known`) and brings the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from struct import pack, unpack
from typing import NamedTuple

from services.writer.articles.rows import Row
from shared.wire.jobs import DIGEST_BYTES

NO_DIGEST = bytes(DIGEST_BYTES)
"""Stands for an entry that can't be recognised next time."""

NAME_BYTES = 16

NO_NAME = ""
"""Stands for the article of an entry that is not listed any more."""

MAX_LISTED = 1000
"""The most entries of a feed that are listed. With more of them its job would be larger than many a feed."""


class ListedEntry(NamedTuple):
    """An entry that need not be read again."""

    digest: bytes
    """Of its source, by the fetcher."""
    name: str
    """Of its article."""
    address_and_flag: int
    """`canonical.address_digest` of its link, and in the last bit `has_lasting_id`."""

    @classmethod
    def of(cls, digest: bytes, name: str, address: int, *, has_lasting_id: bool) -> ListedEntry:
        """Return the entry with this address, of which the last bit is 0."""
        return cls(digest, name, address | has_lasting_id)

    @property
    def address(self) -> int:
        """`canonical.address_digest` of its link."""
        return self.address_and_flag & ~1

    @property
    def has_lasting_id(self) -> bool:
        """Whether the feed's own article is known by the entry's id."""
        return bool(self.address_and_flag & 1)

    def without_lasting_id(self) -> ListedEntry:
        """Return the entry of a feed that has used its id for another article."""
        return self._replace(address_and_flag=self.address)


@dataclass(frozen=True)
class Listing:
    """The entries of a feed that need not be read again."""

    context: bytes
    """Digest of what the entries' meaning depends on outside of them, by the fetcher."""
    entries: tuple[ListedEntry, ...]
    full_at: datetime | None
    """When all entries were read last; None: they have to be read next time."""

    @classmethod
    def unpack(cls, digests: bytes, names: bytes, addresses: bytes, full_at: datetime | None) -> Listing:
        """Return the listing with these columns of `feed_listings`."""
        context, *parts = split_digests(digests)
        step, in_hex = 2 * NAME_BYTES, names.hex()
        texts = [in_hex[at : at + step] for at in range(0, len(in_hex), step)]
        numbers = unpack(f">{len(parts)}Q", addresses)
        return cls(context, tuple(map(ListedEntry, parts, texts, numbers)), full_at)

    def pack(self) -> tuple[bytes, bytes, bytes]:
        """Return the columns `digests`, `names` and `addresses`."""
        return (
            self.context + b"".join([entry.digest for entry in self.entries]),
            bytes.fromhex("".join([entry.name for entry in self.entries])),
            pack(f">{len(self.entries)}Q", *[entry.address_and_flag for entry in self.entries]),
        )


class KnownEntry(NamedTuple):
    """A listed entry that a document still has, and that was not read."""

    listed: ListedEntry
    md5: str
    """MD5(url + title). Without the article's row: its name, so that it equals no other entry's."""
    content_hash: str = ""
    key: str | None = None
    url: str = ""
    is_own: bool = True
    """Whether the feed has brought the article."""

    @classmethod
    def alone(cls, listed: ListedEntry) -> KnownEntry:
        """Return the entry as far as the listing alone tells it."""
        return cls(listed, listed.name)

    @classmethod
    def of_row(cls, listed: ListedEntry, row: Row, url: str, feed_id: int) -> KnownEntry:
        """Return the entry of a feed with its article's row. It was listed because the row equalled it."""
        is_own = row.feed_id == feed_id
        title_md5 = row.title_md5 if is_own else row.name  # another feed may have changed the title
        return cls(listed, title_md5, row.content_hash, row.key, url, is_own)

    @classmethod
    def forgotten(cls, digest: bytes) -> KnownEntry:
        """Return an entry that the job knew, and that is not listed any more. Its feed's ids count as lasting.

        Then no new article is taken for a stored one; that ids are new with each fetch is unlikely in such a feed.
        """
        return cls.alone(ListedEntry.of(digest, NO_NAME, 0, has_lasting_id=True))


def split_digests(packed: bytes) -> list[bytes]:
    """Return the digests that a field holds one after the other."""
    return [packed[at : at + DIGEST_BYTES] for at in range(0, len(packed), DIGEST_BYTES)]


def match(listing: Listing | None, known: bytes) -> list[KnownEntry]:
    """Return the listed entries that a result names in its field `known`, and those that are not listed any more."""
    wanted = dict.fromkeys(split_digests(known))
    listed = [entry for entry in listing.entries if entry.digest in wanted] if listing else []
    for entry in listed:
        wanted.pop(entry.digest, None)
    return [*map(KnownEntry.alone, listed), *map(KnownEntry.forgotten, wanted)]


def names_of(known: Iterable[KnownEntry]) -> set[str]:
    """Return the names of the entries' articles."""
    return {entry.listed.name for entry in known}
