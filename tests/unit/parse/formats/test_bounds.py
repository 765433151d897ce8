from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.fetcher.parse import ParseError
from tests.unit.parse.feeds import item, read, rss

# Entities and expansion


def test_an_external_entity_is_not_opened(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("SECRET")
    for target in (f"file://{quote(str(secret))}", str(secret), "file:///etc/hostname"):
        for space in (" ", "\n"):
            dtd = f'<!DOCTYPE rss [{space}<!ENTITY x SYSTEM "{target}">{space}<!ENTITY % y SYSTEM "{target}">%y; ]>'
            body = rss("<item><title>a &x; b</title></item>").replace("?><rss", f"?>{dtd}<rss")
            assert read(body).entries[0].title == "a &x; b"


@pytest.mark.parametrize("space", ["", "\n"])
def test_a_billion_laughs_are_not_expanded(space: str) -> None:
    laughs = [f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10)]
    dtd = f"<!DOCTYPE rss [{space}<!ENTITY l0 'lol'>{space}{space.join(laughs)}]>"
    body = rss("<item><title>a &l9; b</title></item>").replace("?><rss", f"?>{dtd}<rss")
    assert read(body).entries[0].title == "a &l9; b"


def test_a_long_entity_many_times_over_is_not_expanded() -> None:
    dtd = f'<!DOCTYPE rss [<!ENTITY a "{"A" * 1000}">]>'
    body = rss(f"<item><title>t</title><description>{'&a;' * 1000}</description></item>")
    assert read(body.replace("?><rss", f"?>{dtd}<rss")).entries[0].body == "&a;" * 1000


def test_a_short_declared_text_is_put_in_as_text() -> None:
    dtd = """<!DOCTYPE rss [ <!-- it's "quoted" ]> --> <!ENTITY who "Ada &#60;b&#62;"><!ENTITY lt2 "&#60;">]>"""
    body = rss("<item><title>by &who; &lt2;i</title></item>").replace("?><rss", f"?>{dtd}<rss")
    assert read(body).entries[0].title == "by &who; <i"


def test_references_within_cdata_are_left_to_the_html() -> None:
    entry = item("<title>t</title><description><![CDATA[a &nbsp; b &unknown; &lt;i&gt;]]></description>")
    assert entry.body == "a b &unknown; <i>"


# Time and memory


@pytest.mark.parametrize(
    "inner",
    [
        "<item><author>" + "a" * 400_000 + "</author><title>t</title></item>",
        "<item><title>t</title>" + "".join(f"<category>{n}</category>" for n in range(20_000)) + "</item>",
        "<item><title>t</title></item>" + "<a x='" * 50_000,
        "<item><title>t</title></item>" + "<![CDATA[" * 50_000,
    ],
)
def test_what_costs_feedparser_the_square_of_its_length_is_bounded(inner: str) -> None:
    assert read(rss(inner)).entries[0].title == "t"


@pytest.mark.parametrize("unit", ["a", "a ", "a=", "a='", 'a="', "= ", "a=/"])
def test_the_attributes_of_a_hostile_tag_are_read_once(unit: str) -> None:
    """From each character of a name anew, the letters alone would take two minutes."""
    link = f"<link {unit * (190_000 // len(unit))}>"
    parsed = read(rss("<item><title>t</title></item>", f"{link}<title>News</title>"))
    assert [entry.title for entry in parsed.entries] == ["t"]


FRAGMENTS = st.sampled_from(
    [
        '<?xml version="1.0" encoding="',
        '"?>',
        "<rss>",
        "<rss version='2.0'><channel>",
        "<feed xmlns='http://www.w3.org/2005/Atom'>",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns='http://purl.org/rss/1.0/'>",
        "<item>",
        "</item>",
        "<entry>",
        "<title>",
        "</title>",
        "<link>",
        "<link href='",
        "<guid isPermaLink='",
        "<pubDate>",
        "Mon, 31 Feb 2026 25:61:61 +9999",
        "9999-12-31T23:59:60-23:59",
        "0000-00-00",
        "<description>",
        "<![CDATA[",
        "]]>",
        "<content type='xhtml'>",
        "<content type='application/octet-stream'>",
        "<source url='",
        "<author>",
        "<itunes:owner>",
        "<media:credit>",
        "<georss:point>",
        "<gml:pos srsDimension='x'>1 2",
        "<dcterms:valid>start=x",
        "<psc:chapter start='",
        "<image>",
        "<width>x",
        "<enclosure url='",
        "<ttl a='1'>",
        "<hour>",
        "<svg>",
        "<!DOCTYPE rss [",
        "<!ENTITY a '",
        "<!--",
        "-->",
        "&a;",
        "&#xD800;",
        "&#",
        "&",
        "<",
        ">",
        "'",
        '"',
        "</",
        "/>",
        "</channel></rss>",
        "</feed>",
        "xml:base='http://[",
        "{",
        '{"version":"https://jsonfeed.org/version/1.1","items":[',
        '{"id":1e999,"url":{},"date_published":',
        "}",
        "]",
        ",",
        "\x00",
        "\ufeff",
        "é",
        "\U0001f600",
        " ",
        "\n",
        "javascript:",
        "http://",
    ]
)
BROKEN_FEEDS = st.lists(FRAGMENTS, max_size=40).map("".join)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32", "latin-1", "cp037", "shift_jis"])


@given(st.binary(max_size=400), st.none() | st.sampled_from(["text/xml; charset=utf-16", "x; charset=punycode"]))
@example(b"\xff\xfe<", None)
@example(b"\xef\xbb\xbf\xff", None)
def test_any_bytes_give_a_parsed_feed_or_a_parse_error(body: bytes, content_type: str | None) -> None:
    check(body, content_type)


@given(BROKEN_FEEDS, ENCODINGS)
def test_any_broken_feed_gives_a_parsed_feed_or_a_parse_error(text: str, encoding: str) -> None:
    check(("<rss><channel><item>" + text).encode(encoding, "replace"), None)
    check(text.encode(encoding, "replace"), f"text/xml; charset={encoding}")


def check(body: bytes, content_type: str | None) -> None:
    try:
        parsed = read(body, content_type)
    except ParseError:
        return
    for entry in parsed.entries:
        assert entry.url.startswith(("http://", "https://")) or not entry.url
        entry.model_dump_json()
