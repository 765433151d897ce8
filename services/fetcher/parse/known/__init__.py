"""Leaves known entries out of a feed: they are cut out of its text before it is read.

An entry is known by a digest of its source (`FetchFeed.known`, from an earlier reading of the feed). The answer is that
of a full reading without the known entries, or it is a full reading. For this, an entry's answer must depend on its
source and on the *context* only, whose digest stands before those of the entries.

- Only texts are cut that `pieces` splits for sure, and that the strictest tier of the format reads.
- The context is computed from the reading of the rest. It names the reader's version, the tags around the entries, the
  declarations that change names in the whole document, and the feed's statements that hold for its entries.
- A document has no digests if an entry may change another: a base that holds beyond its element, a date that only the
  feed's other dates explain (`dates.loose`), more entries or enclosures than are kept.
- An entry has no digest if its answer depends on the time (`date_clamped`), or if it leaves no traces in its source.
- A known entry that another one may repeat (`repetition`) is read too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import NamedTuple

from services.fetcher.parse.entries import Built
from services.fetcher.parse.formats import read_feed, read_strictly
from services.fetcher.parse.known.pieces import Pieces, digest_of, split
from services.fetcher.parse.known.repetition import find_repeated, leaves_traces
from services.fetcher.parse.known.version import reader_version
from services.fetcher.parse.model import Deadline, RawFeed
from shared.wire.jobs import DIGEST_BYTES
from shared.wire.results import Entry, FeedInfo

MAX_ENCLOSURES = 10
"""An entry with more has no digest: there is a limit for the enclosures of all entries together."""
MAX_FEED_ENCLOSURES = 40_000
"""Together with those of 1,000 known entries, they stay within `entries.MAX_FEED_ENCLOSURES`."""
MAX_READINGS = 2
"""So often the rest is read before all is read: the second time together with what it may repeat."""

_NONE = bytes(DIGEST_BYTES)
"""The digest of an entry that can't be recognised."""
_TIERS = frozenset({"strict", "json"})


class Found(NamedTuple):
    """A feed as it was read."""

    tier: str
    raw: RawFeed
    about: FeedInfo
    built: Built


class Reading(NamedTuple):
    """A feed, the digests of the known entries left out of it, and the digests of its context and its entries."""

    found: Found
    known: bytes
    digests: bytes


class Rules(NamedTuple):
    """The caller's wishes that change the answer."""

    url: str
    max_entries: int
    keep_html: bool


def read_unknown(
    text: str,
    known: bytes,
    finish: Callable[[str, RawFeed], Found],
    rules: Rules,
    deadline: Deadline | None = None,
) -> Reading:
    """Return the feed in `text` without entries that are known.

    Args:
        text: the body as text, not empty.
        known: the digest of a context, then those of entries; from one earlier reading. Empty: all entries are read.
        finish: makes articles of what a tier has read.
        rules: the same as `finish` follows.
        deadline: returns whether the time is up.

    Raises:
        ParseError: as `read_feed`.
    """
    pieces = split(text)
    if pieces is None:
        return Reading(finish(*read_feed(text, deadline)), b"", b"")
    listing = _Listing(pieces, tuple(map(digest_of, pieces.entries)), finish, rules, deadline)
    starts = range(DIGEST_BYTES, len(known), DIGEST_BYTES)
    wanted = {known[at : at + DIGEST_BYTES] for at in starts}.intersection(listing.digests)
    context, reading = known[:DIGEST_BYTES], None
    for _ in range(MAX_READINGS):
        reading, repeated = listing.read_without(wanted, context) if wanted else (None, wanted)
        if not repeated:
            break
        reading, wanted = None, wanted - repeated
    return reading or listing.read_all(text)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The pieces of a feed's text, and what it takes to read them."""

    pieces: Pieces
    digests: Sequence[bytes]
    """The digest of each entry's source."""
    finish: Callable[[str, RawFeed], Found]
    rules: Rules
    deadline: Deadline | None

    def read_all(self, text: str) -> Reading:
        """Return all entries. Raises ParseError."""
        found = self.finish(*read_feed(text, self.deadline))
        return Reading(found, b"", self._digest(found, set()))

    def read_without(self, known: AbstractSet[bytes], context: bytes) -> tuple[Reading | None, set[bytes]]:
        """Return the entries that are not known, and the known ones which one of them may repeat.

        Returns None if the rest can't be read alone, or if it has another context.
        """
        entries = dict(zip(self.digests, self.pieces.entries, strict=True))
        rest = [source for digest, source in zip(self.digests, self.pieces.entries, strict=True) if digest not in known]
        read = read_strictly(self.pieces.only(rest), self.deadline)
        if read is None:
            return None, set()
        found = self.finish(*read)
        digests = self._digest(found, known)
        if digests[:DIGEST_BYTES] != context:
            return None, set()
        left_out = {digest: self.pieces.plain(entries[digest]) for digest in self.digests if digest in known}
        repeated = find_repeated(found.built.entries, left_out, self.deadline)
        return Reading(found, b"".join(left_out), digests), repeated

    def _digest(self, found: Found, known: AbstractSet[bytes]) -> bytes:
        """Return the digests of the context and of the entries that were read.

        They are empty if nothing can be recognised, since an entry may have changed another or a limit been reached.
        """
        tier, raw, _, built = found
        rest = [at for at, digest in enumerate(self.digests) if digest not in known]
        if (
            tier not in _TIERS
            or raw.scope is None
            or len(raw.entries) + raw.empty != len(rest)
            or len(self.digests) > self.rules.max_entries
            or any(isinstance(date, str) for entry in raw.entries for date in (entry.published_at, entry.updated_at))
            or sum(len(entry.enclosures) for entry in built.entries) >= MAX_FEED_ENCLOSURES
        ):
            return b""
        digests = [_context(found, self.pieces, self.rules)]
        for entry, at in zip(built.entries, built.places, strict=True):
            place = rest[raw.places[at]]
            source = self.pieces.plain(self.pieces.entries[place])
            digests.append(self.digests[place] if _is_recognisable(entry, source) else _NONE)
        return b"".join(digests)


def _context(found: Found, pieces: Pieces, rules: Rules) -> bytes:
    """Return a digest of all that the answer of an entry depends on outside of its source."""
    tier, raw, about, _ = found
    of_feed = (tier, raw.format, raw.scope, raw.authors, about.site_url, about.language)
    return digest_of(reader_version(), repr((rules.url, rules.keep_html, of_feed, pieces.frame)))


def _is_recognisable(entry: Entry, source: str) -> bool:
    return (
        "date_clamped" not in entry.flags and len(entry.enclosures) <= MAX_ENCLOSURES and leaves_traces(entry, source)
    )
