"""Polls of a feed by a fetcher and a writer that remember; the promise that every poll has to keep; feeds to poll."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from services.fetcher.parse import ParsedFeed, ParseError, parse_feed
from shared.wire.jobs import DIGEST_BYTES
from shared.wire.results import Entry
from tests.unit.parse.feeds import NOW, RDF, URL

NONE = bytes(DIGEST_BYTES)


def listed(digests: bytes) -> list[bytes]:
    """Return the digests of the entries, without the context's."""
    return [digests[at : at + DIGEST_BYTES] for at in range(DIGEST_BYTES, len(digests), DIGEST_BYTES)]


@dataclass
class Polls:
    """One feed, and what is known of it."""

    known: bytes = b""
    answers: dict[bytes, Entry] = field(default_factory=dict)
    """What each known entry was when it was read."""
    left_out: int = 0
    """The number of entries that were cut out so far."""

    def poll(
        self,
        body: str | bytes,
        *,
        url: str = URL,
        now: datetime = NOW,
        max_entries: int = 5000,
        keep_html: bool = False,
    ) -> ParsedFeed | None:
        """Read `body` without what is known. Fail unless the answer is that of a full reading without known entries."""
        raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body

        def read(known: bytes | None) -> ParsedFeed | str:
            try:
                return parse_feed(
                    raw, url=url, content_type=None, now=now, max_entries=max_entries, keep_html=keep_html, known=known
                )
            except ParseError as error:
                return str(error)

        part, full = read(self.known), read(None)
        if isinstance(part, str) or isinstance(full, str):
            assert part == full
            return None
        self._check(part, full)
        self._remember(part)
        return part

    def _check(self, part: ParsedFeed, full: ParsedFeed) -> None:
        assert (full.known, full.digests) == (b"", b"")
        assert (part.feed, part.hints, part.format, part.tier) == (full.feed, full.hints, full.format, full.tier)
        rest = list(full.entries)
        left_out = listed(NONE + part.known)
        for digest in left_out:
            assert self.answers[digest] in rest  # it would be read as it was before
            rest.remove(self.answers[digest])
        assert list(part.entries) == rest
        assert len(set(left_out)) == len(left_out)
        assert set(left_out) <= set(listed(self.known))
        assert len(listed(part.digests)) == len(part.entries) or not part.digests
        self.left_out += len(left_out)

    def _remember(self, part: ParsedFeed) -> None:
        if not part.digests:
            assert not part.known
            self.known = b""
            return
        for digest, entry in zip(listed(part.digests), part.entries, strict=True):
            if digest != NONE:
                self.answers[digest] = entry
        new = [digest for digest in listed(part.digests) if digest != NONE]
        self.known = b"".join([part.digests[:DIGEST_BYTES], part.known, *new])


def item(name: object, more: str = "", link: str = "https://example.org/posts/{}") -> str:
    return f"<item><title>Post number {name}</title><link>{link.format(name)}</link>{more}</item>"


def entry(name: object, more: str = "", attributes: str = "") -> str:
    return f'<entry {attributes}><title>Post number {name}</title><link href="posts/{name}"/>{more}</entry>'


def rdf(items: str) -> str:
    body = RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"')
    return body[: body.index("<item ")] + items + "</rdf:RDF>"


def json_feed(*items: Any, **members: Any) -> str:
    return json.dumps({"version": "https://jsonfeed.org/version/1.1", "title": "t", **members, "items": items})


def post(name: object, **members: Any) -> dict[str, Any]:
    return {"id": name, "url": f"https://example.org/posts/{name}", "title": f"Post number {name}", **members}
