"""The data of all browser tests: what the pages show."""

from __future__ import annotations

from services.admin.registry import NewFeed, add_feed, connect


def fill(database_url: str) -> None:
    """Write feeds, fetches and articles. An owner of a page adds a function of his own here."""
    with connect(database_url) as connection:
        for number in range(12):
            add_feed(connection, NewFeed(f"http://host{number % 4}.example/feed{number}.xml"))
