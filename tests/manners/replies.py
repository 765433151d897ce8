"""The replies of these tests' sites: feeds, pages, redirects, misbehaviour."""

from __future__ import annotations

import itertools
import time
import zlib
from collections.abc import Callable, Iterator, Sequence

from tests.integration.fetcher.raw_server import answer
from tests.manners.sites import Reply, Site, Visit

REST = answer(304, Cache_Control="max-age=86400")
"""The last word of most sites: their feeds are not polled any more."""

HTML = b"<!doctype html><html><head><title>Welcome</title></head><body><p>Log in to the hotel's net.</p></body></html>"


def rss(*titles: str, extra: str = "", text: str = "") -> bytes:
    """Return a feed with an article for each title. Their links are relative: each site has articles of its own."""
    items = "".join(
        f"<item><title>{title}</title><link>/{title}</link><description>{text or title}</description></item>"
        for title in titles
    )
    return f"<rss version='2.0'><channel><title>News</title>{extra}{items}</channel></rss>".encode()


def fresh(body: bytes = rss("one"), **headers: str) -> bytes:
    """Return a 200 with a feed."""
    return answer(200, body, Content_Type="application/rss+xml", **headers)


def resting(body: bytes = rss("one"), **headers: str) -> bytes:
    """Return a 200 after which the feed rests."""
    return fresh(body, Cache_Control="max-age=86400", **headers)


def redirect(site: Site | Callable[[], Site], path: str = "/feed", status: int = 302, scheme: str = "http") -> Reply:
    """Return a redirect to a page of another site, or, given as a function, of one that is yet to be named."""

    def reply(visit: Visit) -> Sequence[bytes]:
        target = site if isinstance(site, Site) else site()
        return [answer(status, Location=target.url(path, scheme))]

    return reply


def after(seconds: float, reply: bytes) -> Reply:
    """Return a reply that takes its time."""

    def slow(visit: Visit) -> Iterator[bytes]:
        time.sleep(seconds)
        yield reply

    return slow


def endless(head: bytes, piece: bytes, pause_seconds: float = 0.0) -> Reply:
    """Return a body without an end."""

    def pour(visit: Visit) -> Iterator[bytes]:
        yield head
        for _ in itertools.count():
            time.sleep(pause_seconds)
            yield piece

    return pour


def bomb(encoding: str, layers: int) -> Reply:
    """Return a body of gzip in `layers` that unfolds without an end, sent for as long as somebody reads."""

    def pour(visit: Visit) -> Iterator[bytes]:
        yield f"HTTP/1.1 200 OK\r\nContent-Encoding: {encoding}\r\nContent-Type: text/xml\r\n\r\n".encode()
        packers = [zlib.compressobj(wbits=31) for _ in range(layers)]
        for _ in itertools.count():
            piece = b" " * 1_000_000
            for packer in packers:
                piece = packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
            yield piece

    return pour
