"""Pure: how the known entries of a document bear on the others, and what the feed lists after it."""

from __future__ import annotations

from collections.abc import Sequence, Set

from services.writer.articles.canonical import address_digest
from services.writer.articles.identity import Document, reused_keys
from services.writer.articles.listing import (
    MAX_LISTED,
    NO_DIGEST,
    NO_NAME,
    ListedEntry,
    Listing,
    names_of,
    split_digests,
)
from services.writer.articles.rows import Ledger


def are_apart(ledger: Ledger, document: Document) -> bool:
    """Whether the known entries don't bear on which articles the other entries are, but for showing that ids last.

    If they may, their rows are needed. A known entry has the title and key of its article's row. So it shares neither
    with an entry for which that row was not read. An entry with the key of another feed's article shares its address.
    An entry that is known by its key under another title depends on all texts (`identity`: ids that are positions).
    """
    names = names_of(document.known)
    addresses = {known.listed.address for known in document.known}
    for entry, key in zip(document.entries, document.keys, strict=True):
        own = ledger.under_key(document.feed_id, key)
        named = ledger.rows.get(entry.md5)
        rows = [*own, *ledger.titled(entry.md5), *([named] if named else [])]
        if any(row.title_md5 != entry.md5 for row in own) or any(row.name in names for row in rows):
            return False
        if address_digest(entry.url) in addresses:
            return False
    return True


def relist(
    before: Listing | None,
    document: Document,
    names: Sequence[str],
    digests: bytes,
    ledger: Ledger,
    unsure: Set[str],
) -> Listing | None:
    """Return what a feed lists after this document; None if no entry of it can be recognised.

    Entries are left out if their article's row differs from them in anything. Then those of the same article are, too:
    the first one in the document counts, so they have to be read together.

    Args:
        before: the feed's listing until now.
        document: with the known entries of `before`.
        names: of the entries' articles.
        digests: `FeedFetched.digests`.
        ledger: with the rows as they are stored now.
        unsure: articles whose rows are not sure to be stored so.
    """
    context, *parts = split_digests(digests) or [b""]
    if len(parts) != len(document.entries) or any(len(part) != len(NO_DIGEST) for part in (context, *parts)):
        return None
    reused = reused_keys(ledger, document)
    listed: dict[bytes, ListedEntry] = {}
    unlike: set[str] = set()
    for digest, entry, key, name in zip(parts, document.entries, document.keys, names, strict=True):
        row = ledger.rows[name]
        is_own = row.feed_id == document.feed_id
        is_alike = (row.title_md5, row.content_hash, row.key) == (entry.md5, entry.content_hash, key)
        # Another feed may change the title of its article: then only the name leads to it, unless the id leads to an
        # article of this feed.
        is_found = is_own or (name == entry.md5 and not ledger.under_key(document.feed_id, key))
        if name in unsure or not is_alike or not is_found:
            unlike.add(name)
        elif digest != NO_DIGEST:
            has_lasting_id = is_own and key is not None and key not in reused
            listed[digest] = ListedEntry.of(digest, name, address_digest(entry.url), has_lasting_id=has_lasting_id)
    if before is not None and before.context == context:
        for known in document.known:
            if known.key not in reused:
                listed.setdefault(known.listed.digest, known.listed)
            elif known.is_own:
                listed.setdefault(known.listed.digest, known.listed.without_lasting_id())
    unlike.add(NO_NAME)
    kept = tuple(entry for entry in listed.values() if entry.name not in unlike)
    if not 0 < len(kept) <= MAX_LISTED:
        return None
    return Listing(context, kept, before.full_at if before else None)
