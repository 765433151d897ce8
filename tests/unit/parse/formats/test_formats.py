"""Format and tier are two things, and a new format is one entry in a table."""

from __future__ import annotations

import re

import pytest

from services.fetcher.parse import formats
from services.fetcher.parse.document import Document
from services.fetcher.parse.formats import FORMAT_OF_ROOT, Format
from services.fetcher.parse.model import Deadline, Declined, RawEntry, RawFeed, Text
from tests.unit.parse.feeds import RDF, atom, read, rss

ITEM = "<item><title>One</title><link>https://example.org/1</link></item>"
ENTRY = "<entry><title>One</title><link href='https://example.org/1'/></entry>"
JSON = '{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [{"id": "1", "title": "One"}]}'


@pytest.mark.parametrize(
    ("body", "feed_format", "tier"),
    [
        (rss(ITEM), "rss", "strict"),
        (rss(ITEM) + "<end>", "rss", "lenient"),
        (f"<channel><title>News</title>{ITEM}</channel>", "rss", "lenient"),
        (atom(ENTRY), "atom", "strict"),
        (RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"'), "rdf", "strict"),
        ("Warning: line 7<br>" + atom(ENTRY), "atom", "strict"),
        (JSON, "json", "json"),
        (JSON[:-2], "json", "salvage"),
        (f"<html><body>{rss(ITEM)}</body></html>", "rss", "salvage"),
        (f"<html><body><pre>{JSON}</pre></body></html>", "json", "salvage"),
        (f"<rss></rss><feed>{ENTRY}</feed>", "rss", "salvage"),
    ],
)
def test_the_format_says_what_and_the_tier_how_tolerant(body: str, feed_format: str, tier: str) -> None:
    parsed = read(body)
    assert (parsed.format, parsed.tier) == (feed_format, tier)
    assert [entry.title for entry in parsed.entries] == ["One"]


def test_a_new_format_is_one_entry_whose_readers_are_asked_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def decline(_document: Document, _deadline: Deadline | None) -> RawFeed:
        raise Declined("not sure")

    def read_newsml(document: Document, _deadline: Deadline | None) -> RawFeed:
        headlines = re.findall(r"<headline>(.*?)</headline>", document.source)
        return RawFeed(title=Text("Wire"), entries=tuple(RawEntry(title=Text(headline)) for headline in headlines))

    newsml = Format("newsml", frozenset({"newsmessage"}), {"strict": decline, "lenient": read_newsml})
    monkeypatch.setattr(formats, "FORMAT_OF_ROOT", FORMAT_OF_ROOT | dict.fromkeys(newsml.roots, newsml))
    parsed = read("<?xml version='1.0'?><x:newsMessage><headline>One</headline></x:newsMessage>")
    assert (parsed.format, parsed.tier, parsed.feed.title) == ("newsml", "lenient", "Wire")
    assert [entry.title for entry in parsed.entries] == ["One"]
