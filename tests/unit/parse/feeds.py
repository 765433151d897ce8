"""Small feeds for the reader's tests, and the call that reads them."""

from __future__ import annotations

from datetime import UTC, datetime

from services.fetcher.parse import ParsedFeed, parse_feed
from services.fetcher.parse.document import prepare
from services.fetcher.parse.formats.lenient import read_lenient
from services.fetcher.parse.formats.strict import read_strict
from services.fetcher.parse.model import RawFeed
from shared.wire.results import Entry

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URL = "https://example.org/feeds/news.xml"

NAMESPACES = {
    "atom": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "creativeCommons": "http://backend.userland.com/creativeCommonsRssModule",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
    "georss": "http://www.georss.org/georss",
    "gml": "http://www.opengis.net/gml",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "psc": "http://podlove.org/simple-chapters",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "xlink": "http://www.w3.org/1999/xlink",
}
DECLARED = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())

RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {namespace}>
<channel rdf:about="https://example.org/"><title>News</title><link>https://example.org/</link>
<items><rdf:Seq><rdf:li rdf:resource="https://example.org/1"/></rdf:Seq></items></channel>
<image rdf:about="i"><title>Image</title><url>u</url></image>
<item rdf:about="https://example.org/1"><title>One</title><link>https://example.org/1</link></item>
<textinput><title>Search</title></textinput></rdf:RDF>"""


def read(
    body: str | bytes, content_type: str | None = None, max_entries: int = 5000, *, keep_html: bool = False
) -> ParsedFeed:
    raw = body.encode() if isinstance(body, str) else body
    return parse_feed(raw, url=URL, content_type=content_type, now=NOW, max_entries=max_entries, keep_html=keep_html)


def rss(items: str, channel: str = "<title>News</title><link>https://example.org/</link>") -> str:
    return f'<?xml version="1.0"?><rss version="2.0"><channel>{channel}{items}</channel></rss>'


def item(inner: str) -> Entry:
    (entry,) = read(rss(f"<item>{inner}</item>")).entries
    return entry


def atom(inner: str, attributes: str = "") -> str:
    return f'<feed xmlns="http://www.w3.org/2005/Atom" {attributes}><title>News</title>{inner}</feed>'


def read_by_both(text: str) -> tuple[RawFeed, RawFeed]:
    """Return what the strict and the lenient tier read; raise Declined if the strict one declines."""
    document = prepare(text)
    return read_strict(document), read_lenient(document)


def with_prefixes(document: str) -> str:
    """Return the RSS or Atom document with the usual prefixes declared."""
    return document.replace("<rss ", f"<rss{DECLARED} ", 1).replace("<feed ", f"<feed{DECLARED} ", 1)
