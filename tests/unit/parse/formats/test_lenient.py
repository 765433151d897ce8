from __future__ import annotations

from datetime import UTC, datetime

import pytest

from services.fetcher.parse import NotAFeed, Unparseable
from tests.unit.parse.feeds import atom, item, read, rss

# The formats


def test_an_rss_2_item_is_read_with_all_its_fields() -> None:
    parsed = read("""<?xml version="1.0"?>
      <rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"
           xmlns:dc="http://purl.org/dc/elements/1.1/">
      <channel><title>News &amp; more</title><link>https://example.org/</link><language>en_GB</language>
      <item><title>One &lt;b&gt;bold&lt;/b&gt; step</title><link>https://example.org/1</link><guid>g1</guid>
        <description>Short.</description><content:encoded><![CDATA[<p>Long</p><p>text</p>]]></content:encoded>
        <pubDate>Mon, 02 Feb 2026 10:00:00 +0100</pubDate><dc:creator>Ada</dc:creator>
        <category>a</category><category>b</category><category>a</category>
        <enclosure url="/one.mp3" type="audio/mpeg" length="123"/></item></channel></rss>""")
    assert (parsed.tier, parsed.warnings) == ("strict", ())
    assert parsed.feed.model_dump() == {
        "title": "News & more",
        "site_url": "https://example.org/",
        "language": "en-GB",
    }
    (entry,) = parsed.entries
    assert (entry.entry_id, entry.url, entry.title) == ("g1", "https://example.org/1", "One bold step")
    assert (entry.body, entry.content_quality) == ("Long\ntext", "stub")
    assert (entry.published_at, entry.updated_at) == (datetime(2026, 2, 2, 9, tzinfo=UTC), None)
    assert (entry.author, entry.categories, entry.language) == ("Ada", ("a", "b"), "en-GB")
    assert entry.enclosures[0].model_dump() == {
        "url": "https://example.org/one.mp3",
        "type": "audio/mpeg",
        "length": 123,
    }
    assert entry.flags == ()


def test_an_atom_entry_is_read_with_all_its_fields() -> None:
    parsed = read(
        atom(
            """<link rel="self" href="https://example.org/atom"/><link href="https://example.org/"/>
            <author><name>The Desk</name></author>
            <entry><id>tag:example.org,2026:1</id><title type="html">A &amp;amp; B</title>
            <link rel="related" href="https://example.org/other"/><link href="https://example.org/1"/>
            <updated>2026-02-03T00:00:00Z</updated><published>2026-02-02T10:00:00+01:00</published>
            <category term="a" label="Alpha"/><summary>In short</summary>
            <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>In</p><p>full</p></div></content>
            </entry>""",
            'xml:lang="de"',
        )
    )
    (entry,) = parsed.entries
    assert parsed.feed.site_url == "https://example.org/"
    assert (entry.entry_id, entry.url, entry.title) == ("tag:example.org,2026:1", "https://example.org/1", "A & B")
    assert (entry.body, entry.author, entry.categories, entry.language) == ("In\nfull", "The Desk", ("a",), "de")
    assert entry.published_at == datetime(2026, 2, 2, 9, tzinfo=UTC)
    assert entry.updated_at == datetime(2026, 2, 3, tzinfo=UTC)


def test_an_rdf_feed_is_read() -> None:
    parsed = read("""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
      xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="https://example.org/"><title>News</title>
      <link>https://example.org/</link></channel><item rdf:about="https://example.org/1"><title>One</title>
      <link>https://example.org/1</link><dc:date>2026-02-02T10:00:00Z</dc:date>
      <dc:description>A line</dc:description></item></rdf:RDF>""")
    (entry,) = parsed.entries
    assert (entry.url, entry.title, entry.body) == ("https://example.org/1", "One", "A line")
    assert entry.published_at == datetime(2026, 2, 2, 10, tzinfo=UTC)


def test_an_rss_0_91_feed_with_its_doctype_is_read() -> None:
    parsed = read("""<?xml version="1.0"?>
      <!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/x.dtd">
      <rss version="0.91"><channel><title>Caf&eacute;</title><link>https://example.org/</link>
      <item><title>One</title><link>https://example.org/1</link></item></channel></rss>""")
    assert parsed.feed.title == "Café"
    assert [entry.title for entry in parsed.entries] == ["One"]


def test_a_feed_without_entries_is_a_feed() -> None:
    assert read(rss("")).entries == ()
    assert read(rss("", "<title>A & B</title>")).feed.title == "A & B"


# The pace that a feed asks for


def test_ttl_and_all_skipped_hours_and_days_are_read() -> None:
    parsed = read(
        rss(
            "",
            """<title>t</title><ttl> 90 </ttl><skipHours><hour>23</hour><hour>0</hour><hour>24</hour><hour>7</hour>
            <hour>x</hour><hour>99</hour></skipHours><skipDays><day>Sunday</day><day>monday</day><day>?</day>
            </skipDays>""",
        )
    )
    assert parsed.hints.ttl_seconds == 5400
    assert (parsed.hints.skip_hours, parsed.hints.skip_days) == ((0, 7, 23), (0, 6))


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>", 43_200),
        ("<sy:updatePeriod> Hourly\n</sy:updatePeriod>", 3_600),
        ("<ttl>10</ttl><sy:updatePeriod>weekly</sy:updatePeriod>", 600),
        ("<ttl>0</ttl><ttl a='b'>5</ttl>", None),
        ("<ttl>-5</ttl>", None),
        ("<ttl>999999999</ttl>", 365 * 86_400),
        ("<sy:updatePeriod>sometimes</sy:updatePeriod>", None),
    ],
)
def test_the_pace_that_a_feed_asks_for_is_in_seconds(said: str, seconds: float | None) -> None:
    body = rss("", said).replace("<rss", '<rss xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"')
    assert read(body).hints.ttl_seconds == seconds


# What is no feed, and what is broken


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"", "an empty body"),
        (b" \r\n\t \x00", "an empty body"),
        (b"<!DOCTYPE html><html><head><title>x</title></head><body><p>x</body></html>", "an HTML page"),
        (b"<!doctype html>\n<meta charset=utf-8><p>x", "an HTML page"),
        (b"<html><body><rss></rss></body></html>", "an HTML page"),
        (b"<p>Not found</p>", "an HTML page"),
        (b"just words", "neither XML nor JSON"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "neither XML nor JSON"),
        (b"<?xml version='1.0'?><urlset><url><loc>x</loc></url></urlset>", "XML with the root element <urlset>"),
        (b"<opml version='2.0'><body><outline/></body></opml>", "XML with the root element <opml>"),
        (b"<" * 1_000_000, "neither XML nor JSON"),
    ],
)
def test_what_is_no_feed_is_named(body: bytes, found: str) -> None:
    with pytest.raises(NotAFeed, match=f"^{found}$"):
        read(body)


def test_an_rdf_document_that_is_no_feed_is_refused() -> None:
    with pytest.raises(NotAFeed):
        read('<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"></rdf:RDF>')


def test_a_feed_that_breaks_off_before_its_first_entry_is_unparseable() -> None:
    with pytest.raises(Unparseable, match="malformed XML"):
        read("<rss version='2.0'><channel><title>News</title><link>https://ex")


def test_a_malformed_feed_is_read_as_far_as_it_goes_with_a_warning() -> None:
    parsed = read("<rss><channel><title>A & B</title><item><title>One & two</title><b>x</item></channel></rss>")
    assert [entry.title for entry in parsed.entries] == ["One & two"]
    assert "malformed XML" in parsed.warnings[0]


def test_something_before_the_feed_is_skipped_with_a_warning() -> None:
    parsed = read("<br />\n<b>Warning</b>: x in y.php\n" + rss("<item><title>t</title></item>"))
    assert ([entry.title for entry in parsed.entries], len(parsed.warnings)) == (["t"], 1)


def test_something_after_the_feed_does_not_matter() -> None:
    parsed = read(rss("<item><title>t</title></item>") + "<script>x</script>")
    assert [entry.title for entry in parsed.entries] == ["t"]


def test_nul_bytes_and_control_characters_are_dropped() -> None:
    parsed = read(rss("<item><title>a\x00b\x07c</title></item>"))
    assert (parsed.entries[0].title, parsed.warnings) == ("abc", ())


def test_impossible_character_references_are_replaced() -> None:
    assert item("<title>a&#xD800;b&#0;c&#99999999;d&#x41;</title>").title == "a\ufffdb\ufffdc\ufffddA"


def test_elements_with_feedparsers_own_names_do_no_harm() -> None:
    entry = item(
        '<title>t</title><links a="1"/><authors a="1"/><content a="1">c</content><tags a="1"/>'
        '<published_parsed a="1"/><title_detail a="1"/><guid_is_link a="1"/><media_content a="1"/>'
    )
    assert entry.title == "t"
