"""Pure: the rows of the ledger that a batch may touch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from shared.wire.results import Entry

MAX_UPDATES = 24
"""Some feeds print the time into their entries; after so many updates an article counts as unchanged."""


class Row(NamedTuple):
    """An article in the ledger."""

    name: str
    feed_id: int
    """The feed that brought it; only this feed may change it."""
    title_md5: str
    """MD5(url + title) with the current title."""
    content_hash: str
    key: str | None = None
    """None: the feed gives no id, or the row is older than keys are."""
    updates: int = 0
    is_brief: bool = True
    """Not written since it came. (A listed article is written about once a day, for `last_seen_at`.)"""
    is_due: bool = False
    """Whether it is to be written for `last_seen_at` when it is seen."""

    def show(self, entry: Entry) -> Row:
        """Return the article with the entry's text and title, if it may still change."""
        if self.updates >= MAX_UPDATES or (self.title_md5, self.content_hash) == (entry.md5, entry.content_hash):
            return self
        return self._replace(title_md5=entry.md5, content_hash=entry.content_hash)


class Ledger:
    """The rows of the ledger that a batch may touch: as they are stored, and as they will be."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.stored = {row.name: row for row in rows}
        self.rows: dict[str, Row] = {}
        # New keys of rows that have another one: stored when the row is written anyway, not with each poll.
        self.newer_keys: dict[str, str] = {}
        # Names only, each once. A row that has another title or key by now is skipped when read.
        self._by_title: dict[str, dict[str, None]] = defaultdict(dict)
        self._by_key: dict[str | None, dict[str, None]] = defaultdict(dict)
        for name in sorted(self.stored):
            self.put(self.stored[name])

    def put(self, row: Row) -> None:
        """Add a row, or replace the row of its name."""
        if self.rows.get(row.name) is row:
            return
        self.rows[row.name] = row
        self._by_title[row.title_md5][row.name] = None
        if row.key is not None:
            self._by_key[row.key][row.name] = None

    def under_key(self, feed_id: int, key: str | None) -> list[Row]:
        """Return the feed's articles under this key; more than one if the id is reused."""
        if key not in self._by_key:
            return []
        rows = (self.rows[name] for name in self._by_key[key])
        return [row for row in rows if row.key == key and row.feed_id == feed_id]

    def titled(self, title_md5: str) -> list[Row]:
        """Return the articles with this link and current title; first the one that is named after them."""
        if title_md5 not in self._by_title:
            return []
        rows = (self.rows[name] for name in self._by_title[title_md5])
        return sorted(
            (row for row in rows if row.title_md5 == title_md5), key=lambda row: (row.name != title_md5, row.name)
        )
