"""Pure: which article an entry is.

An article has a *name* for life, the primary key everywhere: MD5(url + title) of the entry when it was first seen. The
ledger also knows the entry's *key* (a digest of the id that the feed gave and the link), and the title as it is now.

- The key comes first: an entry with the same id and link is the same article, even if its title has changed.
- A key is ignored if its id is reused: it has several titles in this document or in the ledger. Keys with changed
  titles are also ignored if the former title and text of one of them stand in this document under another id: then ids
  are positions in a list.
- Link and title come next. An entry with the same link and title, but another id and another text, is another article
  if the feed's ids are known to be stable: both ids stand in this document, or the ledger knows another entry of the
  document by its key. The new article's name is then made with the id. Where ids change with each fetch, the entry is
  the same article with a changed text.
- An article of another feed is the same one, unless this document has several entries with that link and title.

Of a document's known entries, which were not read, the articles are known. They count in these rules as the others do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import md5

from services.writer.articles.listing import KnownEntry
from services.writer.articles.rows import Ledger, Row
from shared.wire.results import Entry

MAX_BRIEF = 24
"""The most articles with one link and title of which none was seen again; a further id then makes no further article.
It bounds an entry whose id changes with each fetch (an advertisement) in a feed whose other ids are stable. It does not
apply if the document has another entry with that link and title that is known by its id."""

MAX_ALIKE = 1000
"""The most articles of a feed with one link and title: each fetch reads them all."""


def entry_key(entry: Entry) -> str | None:
    """Return the digest (hexadecimal) of the feed's id and the link; None if the feed gives no id.

    Fetchers of earlier versions don't send `id_is_given`: then any id that was not made from the entry counts as given.
    """
    if entry.entry_id in {"", entry.url, entry.md5} and not entry.id_is_given:
        return None
    return _digest(f"{entry.entry_id}\n{entry.url}")


def other_name(entry: Entry) -> str:
    """Return the name of an article if MD5(url + title) names another one already."""
    return _digest(f"{entry.url}{entry.title}\n{entry.entry_id}")


def _digest(text: str) -> str:
    return md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Document:
    """The entries of one result, in its order."""

    feed_id: int
    entries: Sequence[Entry]
    keys: Sequence[str | None]
    """The `entry_key` of each entry."""
    known: Sequence[KnownEntry] = ()
    """What the document has beside these entries. Where it stands among them is not known."""

    @classmethod
    def of(cls, feed_id: int, entries: Sequence[Entry]) -> Document:
        """Return the document with these entries."""
        return cls(feed_id, entries, [entry_key(entry) for entry in entries])


def identify(ledger: Ledger, document: Document) -> list[str]:
    """Return the name of each entry's article. Puts new articles into the ledger, and keys that it lacked.

    Args:
        ledger: with all rows under the entries' keys, and named or titled as the entries are.
        document: the entries, and whose they are. Its known entries come with the rows of their articles, unless
            they are apart (`relisting.are_apart`) from the entries.
    """
    matching = _Matching(ledger, document)
    matching.find_by_key()
    groups: dict[str, list[int]] = {entry.md5: [] for entry in document.entries}
    for place, entry in enumerate(matching.listed):
        if entry.md5 in groups:
            groups[entry.md5].append(place)
    for title_md5, places in groups.items():
        matching.find_by_title(ledger.titled(title_md5), places)
    for title_md5, places in groups.items():
        matching.find_or_add(title_md5, places)
    matching.note_newer_keys()
    return [matching.names[place] for place in range(len(document.entries))]


def reused_keys(ledger: Ledger, document: Document) -> set[str]:
    """Return the keys that several entries of the document have, or several articles of the feed."""
    titles: dict[str, set[str]] = defaultdict(set)
    for key, entry in zip(document.keys, document.entries, strict=True):
        if key is not None:
            titles[key].add(entry.md5)
    for known in document.known:
        if known.key is not None:
            titles[known.key].add(known.md5)
    articles = ledger.under_key
    return {key for key, here in titles.items() if len(here) > 1 or len(articles(document.feed_id, key)) > 1}


class _Matching:
    """Finds the articles of one document's entries, step by step."""

    def __init__(self, ledger: Ledger, document: Document) -> None:
        self.ledger = ledger
        self.document = document
        self.feed_id = document.feed_id
        self.entries = document.entries
        # What the document lists: the entries, then the known ones.
        self.listed: list[Entry | KnownEntry] = [*document.entries, *document.known]
        self.keys = [*document.keys, *(known.key for known in document.known)]
        self.names = {place: known.listed.name for place, known in enumerate(document.known, len(document.entries))}
        # The new text of each article that was found here, by name.
        self.texts = {known.listed.name: known.content_hash for known in document.known}
        # The places of entries that were known by their keys. If there are any, the feed's ids are stable.
        self.known_by_key: frozenset[int] = frozenset()
        # Whether ids are positions in the document: `_have_moved`.
        self.have_moved = False
        self.has_new_articles = False
        # Of articles that are stored under another key.
        self.newer_keys: dict[str, str] = {}
        self.reused = reused_keys(ledger, document)

    def has_telling_key(self, place: int) -> bool:
        """Whether the entry has an id that tells which article it is."""
        return self.keys[place] is not None and self.keys[place] not in self.reused

    def find_by_key(self) -> None:
        """Find the entries that are known by their ids, whatever their titles are now."""
        found = {
            place: row
            for place in filter(self.has_telling_key, range(len(self.entries)))
            for row in self.ledger.under_key(self.feed_id, self.keys[place])
        }
        self.have_moved = self._have_moved(found)
        if self.have_moved:
            found = {place: row for place, row in found.items() if row.title_md5 == self.entries[place].md5}
        for place, row in found.items():
            self._take(place, row)
        lasting = (place for place in range(len(self.entries), len(self.listed)) if self._has_lasting_id(place))
        self.known_by_key = frozenset({*found, *lasting})

    def _has_lasting_id(self, place: int) -> bool:
        known = self.document.known[place - len(self.entries)]
        return known.listed.has_lasting_id and known.key not in self.reused

    def _have_moved(self, found: Mapping[int, Row]) -> bool:
        """Whether a known article stands here under another id: then ids are positions in the document."""
        retitled = [row for place, row in found.items() if row.title_md5 != self.entries[place].md5]
        if not retitled:
            return False
        here = {(entry.md5, entry.content_hash) for entry in self.listed}
        return any((row.title_md5, row.content_hash) in here for row in retitled)

    def find_by_title(self, rows: Sequence[Row], places: Sequence[int]) -> None:
        """Find the entries with a row's id, then those with its text; this feed's rows take precedence."""
        if not rows:
            return
        rows = sorted(rows, key=self._is_own)  # the last one of a key or text counts
        by_key: dict[str | None, Row] = {row.key: row for row in rows if row.key is not None}
        for place in self._open(places):
            self._take(place, by_key.get(self.keys[place]))
        by_text = {self.texts.get(row.name, row.content_hash): row for row in rows}
        for place in self._open(places):
            self._take(place, by_text.get(self.entries[place].content_hash))

    def find_or_add(self, title_md5: str, places: Sequence[int]) -> None:
        """Find the entries that are a known article with another text; add the others as new."""
        if next(self._open(places), None) is None:
            return
        rows = self.ledger.titled(title_md5)
        named = self.ledger.rows.get(title_md5)
        if named is not None and named not in rows and named.name not in self.texts:
            rows.append(named)  # it had this title once, and no other entry here is that article
        self.find_by_title(rows, places)
        free = iter(self._free(rows, places))
        first = rows[0] if rows else None
        here: dict[str | None, Row] = {}
        for place in self._open(places):
            key, content_hash = self.keys[place], self.entries[place].content_hash
            row = here.get(content_hash) or (here.get(key) if key else None)
            if row is None and not self.has_telling_key(place):
                row = first
            row = row or next(free, None) or self._add(place)
            self._take(place, row)
            here[key] = here[content_hash] = row
            first = first or row

    def _free(self, rows: Sequence[Row], places: Sequence[int]) -> Sequence[Row]:
        """Return the rows that may be the articles of entries with other ids and texts, the best first."""
        own = [row for row in rows if self._is_own(row)]
        if not own:
            kinds = {(self.keys[place], self.listed[place].content_hash) for place in places}
            return rows if len(kinds) == 1 else ()
        is_volatile = self.known_by_key.isdisjoint(places) and sum(row.is_brief for row in own) >= MAX_BRIEF
        is_same = not self.known_by_key or len(own) >= MAX_ALIKE or is_volatile
        return [row for row in own if row.name not in self.texts and (row.key is None or is_same)]

    def _is_own(self, row: Row) -> bool:
        return row.feed_id == self.feed_id

    def _open(self, places: Iterable[int]) -> Iterator[int]:
        return (place for place in places if place not in self.names)

    def _take(self, place: int, row: Row | None) -> None:
        """Match the entry with the row, if any. Note its key if the row has none or an outdated one."""
        if row is None:
            return
        entry, key = self.entries[place], self.keys[place]
        is_first = row.name not in self.texts
        self.names[place] = row.name
        self.texts.setdefault(row.name, entry.content_hash)
        if not self._is_own(row) or key is None or key == row.key or not is_first:
            return
        if row.key is None or self.have_moved or (self.has_telling_key(place) and row.show(entry) != row):
            self.ledger.put(row._replace(key=key))
        elif self.has_telling_key(place):
            self.newer_keys[row.name] = key

    def note_newer_keys(self) -> None:
        """Store newer keys: at once if the document has new articles, else when their rows are written anyway.

        A new article's key makes the feed's ids look stable. If the other ids have changed in this document (from http
        to https), their new keys must be known by then, or a correction makes each of them a second article.
        """
        if not self.has_new_articles:
            self.ledger.newer_keys |= self.newer_keys
            return
        for name, key in self.newer_keys.items():
            self.ledger.put(self.ledger.rows[name]._replace(key=key))

    def _add(self, place: int) -> Row:
        entry = self.entries[place]
        name = entry.md5 if entry.md5 not in self.ledger.rows else other_name(entry)
        while name in self.texts:  # another entry of this document keeps that name, though its id has changed
            name = _digest(f"{name}\n{entry.entry_id}")
        if name not in self.ledger.rows:
            self.has_new_articles = True
            self.ledger.put(Row(name, self.feed_id, entry.md5, entry.content_hash, self.keys[place]))
        return self.ledger.rows[name]
