"""A source type of somebody else: the pages of a sitemap become entries. Registered by `test_source_types`."""

from __future__ import annotations

from datetime import datetime
from xml.etree import ElementTree

from pydantic import Field

from services.fetcher.sources import (
    NotAFeed,
    RawEntry,
    RawFeed,
    ReadContext,
    Reading,
    RequestConfig,
    SourceType,
    Text,
    Unparseable,
    make_reading,
)

NAMES = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}


class SitemapConfig(RequestConfig):
    section: str = Field("", max_length=20, description="a part of the path, of at most 20 characters")


def read(body: bytes, context: ReadContext[SitemapConfig]) -> Reading:
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise Unparseable(str(error)) from error
    if not root.tag.endswith("}urlset"):
        raise NotAFeed(f"a document {root.tag!r}")
    entries = []
    for page in root.findall("s:url", NAMES):
        link, moment = page.findtext("s:loc", "", NAMES), page.findtext("s:lastmod", "", NAMES)
        if f"/{context.config.section}" in link:
            title = Text(link.rpartition("/")[2].replace("-", " "))
            entries.append(RawEntry(link=link, title=title, published_at=datetime.fromisoformat(moment)))
    return make_reading(RawFeed(title=Text("The &amp; site", is_html=True), entries=tuple(entries)), context)


SITEMAP = SourceType(read, SitemapConfig)
