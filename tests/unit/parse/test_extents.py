"""Feeds that break off, and feeds with more entries than a tier can afford."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from html import escape

import pytest

from services.fetcher.parse import ParsedFeed, ParseError
from services.fetcher.parse.extents import newest, trim
from services.fetcher.parse.formats.lenient.guarded_feedparser import MAX_ENTRIES
from tests.unit.parse.feeds import NOW, RDF, atom, read, rss, with_prefixes

RSS = with_prefixes(
    rss(
        """<item><title>Größe &amp; <![CDATA[<b>two</b>]]></title><link>https://example.org/1?a=1&amp;b=2</link>
<guid isPermaLink="false">g1</guid><description><![CDATA[As in <item><title>x</title></item></channel></rss> &amp;]]>
</description><pubDate>Mon, 02 Feb 2026 10:00:00 GMT</pubDate></item>
<!-- <item><title>no</title></item> --><item><guid>https://example.org/2?long=address</guid><title>Zwei</title></item>
<item><description>Words without a title: the first become one</description><enclosure url="/three.mp3"/></item>
<item><media:title>M</media:title><link>/4</link><title>Fünf 世界 🌍</title><link>/five</link></item>"""
    )
)
ATOM = atom(
    """<link rel="self" href="/atom"/><link href="https://example.org/home/"/><entry><id>tag:example.org,2026:1</id>
<title type="html">A &amp;amp; B &lt;i&gt;c&lt;/i&gt;</title><link rel="related" href="https://example.org/no"/>
<link href="one"/><updated>2026-02-03T00:00:00Z</updated><content type="html">&lt;entry&gt;</content></entry>
<entry xml:base="https://base.example/a/"><link href="two"/><title>Zwölf</title><id>2</id><content type="xhtml"><div
xmlns="http://www.w3.org/1999/xhtml"><p>In <b>full</b></p></div></content></entry>
<entry><id>https://example.org/three</id><link href="/3?x=1&amp;y=2"/><summary>A line</summary></entry>""",
    'xml:base="https://example.org/b/"',
)
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "home_page_url": "https://example.org/",
        "items": [{"id": "1", "url": "/1", "title": 'One "}]'}, {"title": "Zwei", "id": "/2", "external_url": "b"}],
    },
    ensure_ascii=False,
)
LATIN = RSS.replace("世界 🌍", "")
WHOLE = {
    "rss": RSS.encode(),
    "rss, mislabelled": RSS.replace('"1.0"?', '"1.0" encoding="iso-8859-1"?').encode(),
    "rss, malformed": RSS.replace("<rss ", "<rss & ").encode(),
    "rss, after an empty one": (rss("") + RSS).encode(),
    "rss, in windows-1252": LATIN.replace('"1.0"?', '"1.0" encoding="iso-8859-1"?').encode("cp1252"),
    "rss, in UTF-16": LATIN.encode("utf-16"),
    "atom": ATOM.encode(),
    "rdf": RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"').encode(),
    "json": JSON.encode(),
    "rss in a page": f"<html><body><pre>{escape(RSS)}</pre></body></html>".encode(),
    "json in a page": f"<html><body><pre>{escape(JSON)}</pre></body></html>".encode(),
}


def articles(parsed: ParsedFeed) -> set[tuple[str, str]]:
    return {(entry.url, entry.title) for entry in parsed.entries}


def prefixes(body: bytes) -> Iterator[tuple[int, ParsedFeed]]:
    for length in range(len(body)):
        try:
            yield length, read(body[:length])
        except ParseError:
            continue


@pytest.mark.parametrize("body", WHOLE.values(), ids=WHOLE)
def test_wherever_a_feed_breaks_off_no_other_articles_are_made_of_it(body: bytes) -> None:
    whole, counts = articles(read(body)), list[int]()
    assert len(whole) > 0
    for length, parsed in prefixes(body):
        assert articles(parsed) <= whole, body[:length][-100:]
        counts.append(len(parsed.entries))
    assert counts == sorted(counts)
    assert max(counts) == len(whole)


def test_the_entry_that_was_cut_off_is_counted() -> None:
    parsed = read(RSS.partition("<enclosure")[0])
    assert len(parsed.entries) == 2
    assert "entries cut off with the end of the feed and left out: 1" in parsed.warnings
    assert not any("cut off" in warning for warning in read(RSS + "<end>").warnings)


def test_what_is_only_sloppy_is_not_cut() -> None:
    for sloppy in (
        "<rss><channel><item><title>One</title></channel></rss>",
        "<rss><item><title>One</title></item>",
        "<rss><item><title>One</title></item></channel>",
        "<rss><channel><item><title>One</title><description><![CDATA[a</description></item></channel></rss>",
        "<rss><item><title>One</title></item><!-- never closed",
        "<rss><item><title>One</title></item></channel></rss><script>x",
    ):
        assert [entry.title for entry in read(sloppy).entries] == ["One"], sloppy


# More entries than a tier can afford


def numbered(number: int, of: int) -> str:
    date = NOW - timedelta(minutes=of - number)  # the oldest first
    return f"<item><title>{number}</title><pubDate>{date:%a, %d %b %Y %H:%M:%S} GMT</pubDate></item>"


@pytest.mark.parametrize(("end", "tier"), [("<end>", "lenient"), ("", "salvage")])
def test_of_more_entries_than_a_tier_can_afford_the_newest_are_read_and_the_others_counted(end: str, tier: str) -> None:
    most = MAX_ENTRIES + 500
    body = rss("".join(numbered(n, most) for n in range(most)))
    parsed = read((rss("") if tier == "salvage" else "") + body + end, max_entries=100)
    assert parsed.tier == tier
    assert [entry.title for entry in parsed.entries] == [str(n) for n in range(most - 100, most)]
    assert f"entries beyond the newest {MAX_ENTRIES} not read: 500" in parsed.warnings
    assert f"entries beyond the newest 100 dropped: {MAX_ENTRIES - 100}" in parsed.warnings


def test_of_more_items_than_json_may_have_the_newest_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.fetcher.parse.formats.jsonfeed.MAX_ENTRIES", 2)
    items = [{"title": day, "date_published": f"2026-02-{day}"} for day in ("01", "09", "05")]
    parsed = read(json.dumps({"version": "https://jsonfeed.org/version/1", "items": [*items, {"title": "none"}]}))
    assert [entry.title for entry in parsed.entries] == ["09", "05"]
    assert parsed.warnings == ("entries beyond the newest 2 not read: 2",)


def test_the_document_around_the_newest_stays_as_it_was() -> None:
    pieces = [f"<entry><updated>2026-02-0{day}</updated></entry>" for day in (3, 1, 9)]
    raw = "<entry><x><![CDATA[<entry><updated>2030-01-01]]></x><published>2026-02-02</published></entry>"
    source = f"<feed>a{pieces[0]} {pieces[1]}{raw}<!--<entry>-->{pieces[2]}</feed>"
    trimmed = trim(source, 2)
    assert trimmed.source == f"<feed>a{pieces[0]} {pieces[2]}</feed>"
    assert trimmed.warnings == ("entries beyond the newest 2 not read: 2",)
    assert trim(source, 4).source == source


def test_dates_that_only_their_feed_explains_are_compared_too() -> None:
    dates = ["25/12/2025", "03/04/2025", "04/03/2025", None, "05/03/2025", NOW]
    assert newest(dates, 3) == [0, 1, 5]
    assert newest([None, None, None], 2) == [0, 1]


UNITS = ("<item", "<item ", "<item/>", "<![CDATA[", "<!--", "<!---->", "</item ", "<a:", "<date>", "<date ", "</a:")


@pytest.mark.parametrize("unit", UNITS)
def test_hostile_documents_are_worked_off_once(unit: str) -> None:
    trim("<item>" + unit * (1_000_000 // len(unit)), 20_000)
    trim("<item><date>" * 20_001 + unit * (1_000_000 // len(unit)) + "</item></rss>", 20_000)
