"""Which of its links is the address of an entry or of a site, in each tier."""

from __future__ import annotations

import pytest

from tests.unit.parse.feeds import DECLARED, atom, read, read_by_both, rss, with_prefixes

A, B = "https://example.org/a", "https://example.org/b"

CASES = [
    (f"<link>{A}</link>", A),
    (f"<link>{A}</link><link>{B}</link>", A),
    (f"<link/><link>{A}</link>", A),
    (f"<link>{A}</link><link/>", A),
    (f"<link>{A}</link><atom:link rel='alternate' href='{B}'/>", A),
    (f"<atom:link rel='alternate' href='{B}'/><link>{A}</link>", A),
    (f"<link>{A}</link><atom:link rel='alternate' type='text/html' href='{B}'/>", A),
    (f"<link></link><atom:link rel='alternate' href='{A}'/>", A),
    (f"<atom:link href='{A}'/><atom:link href='{B}'/>", A),
    (f"<link rel='enclosure'>{B}</link><link>{A}</link>", A),
    (f"<link>{A}</link><link rel='enclosure'>{B}</link>", A),
    (f"<link rel='self'>{B}</link>", ""),
    *[
        (f"<link rel='{other}' href='{B}'/>", "")
        for other in ("enclosure", "self", "replies", "edit", "via", "hub", "next", "related", "license", "payment")
    ],
    *[
        (f"<link rel='{other}' href='{B}'/><link href='{A}'/><link rel='{other}' href='{B}' type='text/html'/>", A)
        for other in ("enclosure", "self", "replies", "edit", "via", "hub", "next", "http://example.org/own")
    ],
    (f"<link rel='ALTERNATE' href='{A}'/>", A),
    (f"<link rel='alternate nofollow' href='{A}'/>", A),
    (f"<link rel='' href='{A}'/>", A),
    (f"<link rel='http://www.iana.org/assignments/relation/alternate' href='{A}'/>", A),
    (f"<link href='{B}' rel='http://www.iana.org/assignments/relation/self'/>", ""),
    ("<link uri='at://did:plc:1/post/1'/>", ""),
    (f"<link>{A}</link><link uri='at://did:plc:1/post/1'/>", A),
    (f"<link uri='at://did:plc:1/post/1'/><link>{A}</link>", A),
    (f"<link uri='at://did:plc:1/post/1'>{A}</link>", A),
    (f"<link uri='at://did:plc:1/post/1' href='{A}'/>", A),
    (f"<link>at://did:plc:1/post/1</link><atom:link href='{A}'/>", A),
    *[
        (f"<link>{scheme}x</link><link>{A}</link>", A)
        for scheme in ("mailto:", "javascript:", "tag:", "urn:", "gopher://", "magnet:?")
    ],
    (f"<link url='{A}'/>", A),
    (f"<link uri='{A}'/>", A),
    (f"<link type='application/pdf' href='{B}'/><link type='text/html' href='{A}'/>", A),
    (f"<link type='application/json' href='{B}'/><link href='{A}'/>", A),
    (f"<link href='{A}'/><link type='application/xml' href='{B}'/>", A),
    (f"<link type='application/atom+xml' href='{B}'/><link type='text/html; charset=utf-8' href='{A}'/>", A),
    (f"<link type='application/pdf' href='{A}'/><link type='application/json' href='{B}'/>", A),
    (f"<link type='application/xhtml+xml' href='{A}'/>", A),
    (f"<link href='{A}' hreflang='de'/><link href='{B}' hreflang='fr'/>", A),
    ("<link href='/a'/>", A),
    ("<link>/a</link>", A),
    ("<link>//example.org/a</link>", A),
    (f"<link>\n {A} \n</link>", A),
    (f"<link><![CDATA[{A}]]></link>", A),
    ("<link xml:base='https://example.org/sub/' href='../a'/>", A),
    ("<link>HTTPS://example.org/a</link>", A),
]


@pytest.mark.parametrize(("links", "expected"), CASES)
def test_an_entry_has_the_same_address_in_each_tier(links: str, expected: str) -> None:
    for document in (rss(f"<item><title>t</title>{links}</item>"), atom(f"<entry><title>t</title>{links}</entry>")):
        strict, lenient = read_by_both(with_prefixes(document))
        assert strict == lenient
        for source in (document, document.replace("</title>", "</title><b>", 1)):
            (entry,) = read(with_prefixes(source)).entries
            assert entry.url in {expected, B if "enclosure" in links and not expected else expected}


@pytest.mark.parametrize(("links", "expected"), CASES)
def test_a_site_has_the_same_address_in_each_tier(links: str, expected: str) -> None:
    for document in (rss("<item><title>t</title></item>", f"<title>N</title>{links}"), atom(links)):
        strict, lenient = read_by_both(with_prefixes(document))
        assert strict == lenient
        assert (read(with_prefixes(document)).feed.site_url or "") == expected


def test_a_link_in_the_language_of_the_feed_goes_before_others() -> None:
    links = f"<link href='{B}' hreflang='de'/><link href='{A}' hreflang='en-GB'/><link href='{B}' hreflang='fr'/>"
    strict, lenient = read_by_both(atom(f"{links}<entry><title>t</title>{links}</entry>", "xml:lang='en'"))
    assert strict == lenient
    assert (strict.link, strict.entries[0].link) == (A, A)
    for neutral in (f"<link href='{A}' hreflang='x-default'/>", f"<link href='{A}'/>"):
        (entry,) = read(
            atom(f"<entry><title>t</title><link href='{B}' hreflang='de'/>{neutral}</entry>", "xml:lang='en'")
        ).entries
        assert entry.url == A


def test_the_link_of_an_image_or_a_search_box_is_not_the_sites() -> None:
    image = f"<image><url>u</url><link>{B}</link></image>"
    inner = f"<title>N</title>{image}<link>{A}</link><textInput><link>{B}</link></textInput>"
    strict, lenient = read_by_both(rss("", inner))
    assert strict == lenient
    assert strict.link == A


def test_a_guid_stands_in_for_a_link_that_is_none() -> None:
    for links in ("<link/>", "<link>at://did:plc:1/post/1</link>", f"<link rel='self' href='{B}'/>"):
        (entry,) = read(rss(f"<item><title>t</title>{links}<guid>{A}</guid></item>")).entries
        assert entry.url == A


def test_json_feeds_other_address_stands_in_for_one_that_is_no_pages() -> None:
    for url in ("", "at://did:plc:1/post/1", "mailto:jane@example.org"):
        (entry,) = read(f'{{"items": [{{"title": "t", "url": "{url}", "external_url": "{A}"}}], "title": "N"}}').entries
        assert entry.url == A


def test_the_address_behind_a_feedburner_link_is_left_aside() -> None:
    item = f"<item><title>t</title><link>{A}</link><feedburner:origLink>{B}</feedburner:origLink></item>"
    assert read(with_prefixes(rss(item))).entries[0].url == A
    assert "feedburner" in DECLARED
