"""Pure: the text of an entry, as all parts of the enricher get it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from shared.wire.results import Entry

MOST_TITLE = 500
MOST_BODY = 4_000
"""So many characters of title and body are looked at: the beginning of an article tells what it is about, and bounds
the time that it takes."""


@dataclass(frozen=True, slots=True)
class Text:
    """What is looked at of an entry. Offsets into it are offsets into the entry's own title and body."""

    title: str
    body: str
    categories: tuple[str, ...] = ()
    """As the feed gives them."""
    label: str | None = None
    """The language that the entry or its feed claims, as it is written there."""
    is_cut: bool = False
    sections: tuple[str, ...] = ()
    """The folders of its address, which are often named for a section (`/sport/football/…`)."""

    @classmethod
    def of(cls, entry: Entry, feed_language: str | None) -> Text:
        """Return the text of an entry of a feed that claims this language."""
        is_cut = len(entry.title) > MOST_TITLE or len(entry.body) > MOST_BODY
        label = entry.language or feed_language
        title, body, folders = entry.title[:MOST_TITLE], entry.body[:MOST_BODY], _folders(entry.url)
        return cls(title, body, entry.categories, label, is_cut, folders)


def _folders(url: str) -> tuple[str, ...]:
    """Return the folders of a URL, without the article itself; three are enough."""
    try:
        path = unquote(urlsplit(url).path[:300])
    except ValueError:
        return ()
    return tuple(part for part in path.split("/")[:-1] if part)[:3]
