"""Registers the feeds of a list, in chunks.

A chunk's new feeds are one transaction, in the order of their URLs; tags for feeds that are there are a second one, in
the order of the feeds' ids. So no import waits for a row while it holds the key of a new one, and imports, writers and
other commands can work side by side. An import that dies leaves whole chunks; the same import again adds the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import TypeVar

from psycopg import errors
from psycopg.types.json import Json

from services.admin.feeds.tags import merge_tags
from services.admin.registry import Connection, NewFeed, insert_feeds, make_row
from services.admin.subscriptions.first_polls import FirstPolls
from services.admin.subscriptions.model import Listed
from services.admin.subscriptions.rules import Reason, Skipped, check_listed
from services.fetcher.http.address_guard import Network
from shared.database.postgres import transaction_bounds
from shared.politeness import politeness_group

CHUNK = 1000
"""Lines of a list that are looked up and written together."""

STATEMENT_SECONDS = 60.0
TRIES = 10
"""So often a transaction is tried that waits too long for a lock: half a minute together."""

Result = TypeVar("Result")

_BLOCKED = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure)


@dataclass
class Imported:
    """What an import has done so far; of a dry run, what it would have done."""

    listed: int = 0
    added: int = 0
    tagged: int = 0
    """Feeds that were there already and got tags."""
    skipped: Counter[Reason] = field(default_factory=Counter)
    longest_wait_seconds: float = 0.0
    """Until the last of the first polls is due."""

    @property
    def refused(self) -> int:
        """How many feeds of the list are not registered."""
        return sum(count for reason, count in self.skipped.items() if reason.is_refusal)


@dataclass
class _Candidate:
    line: int
    feed: NewFeed
    group: str
    is_repeat: bool = False
    """An earlier chunk has the feed; only its tags are of interest."""
    wait_seconds: float | None = None


@dataclass(frozen=True)
class Rules:
    """The settings that an import follows."""

    allowed: tuple[Network, ...]
    """Networks that may be fetched from although they are not public."""
    proxy_hosts: frozenset[str]
    interval_of: Callable[[str], float]
    """Returns the least time between two requests to a politeness group, in seconds."""
    tags: tuple[str, ...] = ()
    """What every feed of the list gets, in the form that `clean_tag` returns."""
    dry_run: bool = False


class Import:
    """One import. `done` says at any time what has been committed.

    Args:
        connection: to the database; no transaction is open on it.
        rules: the settings.
        report: is told of each line that is skipped; within a chunk in their order.
    """

    def __init__(self, connection: Connection, rules: Rules, report: Callable[[Skipped], None]) -> None:
        self.done = Imported()
        self._connection = connection
        connection.prepare_threshold = None  # a PgBouncer in transaction mode may be between us and the server
        self._rules = rules
        self._report = report
        self._first_polls = FirstPolls(rules.interval_of)
        self._lines: dict[bytes, int] = {}
        self._chunk: dict[str, _Candidate] = {}
        self._skipped: list[Skipped] = []

    def run(self, feeds: Iterable[Listed], progress: Callable[[int], None] = lambda _: None) -> Imported:
        """Import `feeds`; `progress` is told after each chunk how many were read.

        Raises:
            psycopg.Error: as the connection does. What was committed before stays.
        """
        for listed in self.chunks(feeds):
            progress(listed)
        return self.done

    def chunks(self, feeds: Iterable[Listed]) -> Iterator[int]:
        """Import one chunk of `feeds` after the other; yield after each how many were read. Errors as for `run`."""
        listed = 0
        for listed, feed in enumerate(feeds, 1):
            self._take(feed)
            if listed % CHUNK == 0:
                self._flush(listed)
                yield listed
        self._flush(listed)
        yield listed

    def _take(self, listed: Listed) -> None:
        feed = check_listed(listed, self._rules.allowed)
        if isinstance(feed, Skipped):
            self._skipped.append(feed)
            return
        tags = tuple(merge_tags(feed.tags, self._rules.tags))
        digest = blake2b(feed.url.encode(), digest_size=12).digest()
        first = self._lines.get(digest)
        self._lines.setdefault(digest, listed.line)
        if present := self._chunk.get(feed.url):
            present.feed = replace(present.feed, tags=tuple(merge_tags(present.feed.tags, tags)))
        else:
            group = politeness_group(feed.url, self._rules.proxy_hosts)
            self._chunk[feed.url] = _Candidate(listed.line, replace(feed, tags=tags), group, first is not None)
        if first is not None:
            self._skipped.append(Skipped(listed.line, Reason.DUPLICATE, f"the feed of line {first} again", listed.url))

    def _flush(self, listed: int) -> None:
        chunk, skipped = self._chunk, self._skipped
        self._chunk, self._skipped = {}, []
        added: set[str] = set()
        there = in_transaction(self._connection, lambda: self._insert(chunk, added)) if chunk else {}
        lacking = [
            url
            for url, candidate in chunk.items()
            if url not in added and (url not in there or _lacks(there[url][1], candidate.feed.tags))
        ]
        tagged = in_transaction(self._connection, lambda: self._tag(lacking, chunk)) if lacking else 0
        for url, candidate in chunk.items():
            if url not in added and not candidate.is_repeat:
                known = f"there already as feed {there[url][0]}" if url in there else "there already"
                skipped.append(Skipped(candidate.line, Reason.ALREADY_THERE, known, candidate.feed.url))
        self.done.listed, self.done.added = listed, self.done.added + len(added)
        self.done.tagged += tagged
        self.done.skipped.update(each.reason for each in skipped)
        self.done.longest_wait_seconds = self._first_polls.longest_seconds
        for each in sorted(skipped, key=lambda each: each.line):
            self._report(each)

    def _insert(self, chunk: dict[str, _Candidate], added: set[str]) -> dict[str, tuple[int, list[str]]]:
        """Insert the chunk's new feeds and put their URLs into `added`; return id and tags of those that are there."""
        rows = self._connection.execute("SELECT id, url, tags FROM feeds WHERE url = ANY(%s)", [list(chunk)])
        there = {row["url"]: (row["id"], row["tags"]) for row in rows}
        new = {url: each for url, each in chunk.items() if url not in there and not each.is_repeat}
        for each in new.values():
            if each.wait_seconds is None:  # not tried before
                each.wait_seconds = self._first_polls.next_wait(each.group)
        added.clear()
        if self._rules.dry_run:
            added.update(new)
        elif new:
            made = (make_row(one.feed, url, one.group, wait_seconds=one.wait_seconds or 0) for url, one in new.items())
            added.update(insert_feeds(self._connection, made))
        return there

    def _tag(self, urls: list[str], chunk: dict[str, _Candidate]) -> int:
        """Give feeds that are there the tags that they lack; return how many got some."""
        statement = "SELECT id, url, tags FROM feeds WHERE url = ANY(%s) ORDER BY id FOR NO KEY UPDATE"
        rows = self._connection.execute(statement, [urls]).fetchall()
        lacking = [row for row in rows if _lacks(row["tags"], chunk[row["url"]].feed.tags)]
        merged = [{"id": row["id"], "tags": merge_tags(row["tags"], chunk[row["url"]].feed.tags)} for row in lacking]
        if merged and not self._rules.dry_run:
            self._connection.execute(
                "UPDATE feeds SET tags = given.tags FROM json_to_recordset(%s) AS given (id bigint, tags text[])"
                " WHERE feeds.id = given.id",
                [Json(merged)],
            )
        return sum(not chunk[row["url"]].is_repeat for row in lacking)


def in_transaction(connection: Connection, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, done in a transaction that is tried again if it waits too long for a lock."""
    for tried in range(1, TRIES + 1):
        try:
            with connection.transaction():
                connection.execute(*transaction_bounds(STATEMENT_SECONDS))
                return work()
        except _BLOCKED:
            if tried == TRIES:
                raise
    raise AssertionError


def _lacks(present: Iterable[str], wanted: Iterable[str]) -> bool:
    present = list(present)
    return merge_tags(present, wanted) != present
