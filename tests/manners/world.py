"""The whole pipeline over the sites of the tests, and the rows that it has stored."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

from services.admin.registry import NewFeed, add_feed, connect
from tests.manners.sites import PATIENCE_SECONDS, Site

Row = dict[str, Any]


class World:
    """Queries to the pipeline's database. The sites themselves record the requests."""

    def __init__(self, database_url: str) -> None:
        self.database_url = database_url
        self._ids: dict[tuple[Site, str], int] = {}

    def register(self, sites: Iterable[Site]) -> None:
        """Add the feeds of the sites to the registry."""
        with connect(self.database_url) as connection:
            for site in sites:
                for path in site.feeds:
                    feed = NewFeed(site.url(path), interval_seconds=site.interval)
                    self._ids[site, path], _ = add_feed(connection, feed)
                    connection.execute(  # bounded, so that failures don't slow the tests down
                        """
                        UPDATE feeds SET source_config = %s, shortest_seconds = %s, longest_seconds = %s WHERE id = %s
                        """,
                        [json.dumps(site.config), site.interval, site.interval, self._ids[site, path]],
                    )

    def feed(self, site: Site, path: str = "/feed") -> Row:
        """Return the row of a feed."""
        return self._rows("SELECT * FROM feeds WHERE id = %(id)s", site, path)[0]

    def articles(self, site: Site, path: str = "/feed") -> list[Row]:
        """Return the pending articles of a feed, by title."""
        return self._rows("SELECT * FROM pending_articles WHERE feed_id = %(id)s ORDER BY title", site, path)

    def attempts(self, site: Site, count: int, path: str = "/feed") -> list[Row]:
        """Return the first `count` attempts at a feed in the fetch log, as soon as they are there."""
        statement = "SELECT * FROM feed_fetch_log WHERE feed_id = %(id)s AND outcome <> 'skipped' ORDER BY started_at"
        self.until(lambda: len(self._rows(statement, site, path)) >= count)
        return self._rows(statement, site, path)[:count]

    def execute(self, statement: str, site: Site, path: str = "/feed") -> None:
        """Change the database by hand: a statement with `%(id)s` for the feed."""
        with connect(self.database_url) as connection:
            connection.execute(statement.encode(), {"id": self._ids[site, path]})

    def query(self, statement: str, site: Site, path: str = "/feed") -> list[Row]:
        """Return the rows of a statement with `%(id)s` for the feed."""
        return self._rows(statement, site, path)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that shows in the database."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            assert time.monotonic() < deadline, "it did not come to pass"
            time.sleep(0.05)

    def _rows(self, statement: str, site: Site, path: str) -> list[Row]:
        with connect(self.database_url) as connection:
            return connection.execute(statement.encode(), {"id": self._ids[site, path]}).fetchall()
