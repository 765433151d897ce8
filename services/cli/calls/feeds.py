"""Which feed a person means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.cli.calls.api import Api


def find_feed(api: Api, feed: str) -> int:
    """Return the id of the feed with this id or URL. Whether there is a feed of an id, the next call tells.

    Raises:
        ConfigurationError: there is none of this URL.
    """
    if feed.isascii() and feed.isdecimal() and len(feed) < 19 and int(feed) > 0:
        return int(feed)
    # In the body: a URL may hold a password, and those of requests are logged.
    id_: int = api.call("POST", "/api/feeds/lookup", body={"url": feed}).json()["id"]
    return id_
