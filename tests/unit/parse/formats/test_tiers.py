"""Made-up feeds, well-formed and odd: whatever the strict tier reads, it reads as the lenient tier does."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

from feedparser.datetimes import _parse_date
from hypothesis import given, settings
from hypothesis import strategies as st

from services.fetcher.parse.dates import from_struct, read_date
from services.fetcher.parse.formats.lenient.guarded_feedparser import HANDLED
from services.fetcher.parse.model import Declined
from tests.unit.parse.feeds import NAMESPACES, RDF, atom, read_by_both, rss, with_prefixes

PREFIXES = {prefix.lower(): prefix for prefix in NAMESPACES}
USUAL = """
    title link guid id description summary content content:encoded pubDate published updated dc:date dc:creator author
    category enclosure media:content media:group media:title source itunes:author itunes:summary language name email
    uri itunes:title dcterms:issued created dc:title dc:subject atom:link image xhtml:body ttl skipHours hour foo item
    sy:updatePeriod entry xhtml:div b
    svg math psc:chapters psc:chapter itunes:owner georss:where gml:Point gml:pos
    """.split()  # noqa: SIM905
NAMES = USUAL * 3 + sorted(
    f"{PREFIXES[prefix]}:{local}" if prefix in PREFIXES else local
    for prefix, _, local in (name.rpartition("_") for name in HANDLED)
    if prefix in PREFIXES or not prefix
)
TEXTS = st.sampled_from(
    [
        "",
        " \n",
        "hello",
        "a & b",
        "<b>x</b> y",
        "<p>unclosed",
        "&lt;i&gt; &eacute; &#233; &nope;",
        "cafÃ©",
        "\x93q\x94",
        "中文",
        "Bob <bob@example.org>",
        "bob@example.org (Bob)",
        "https://example.org/?a=1&amp;b=2&c;",
        "/relative",
        "https:////example.org/x",
        "at://did:plc:1/post/1",
        "one, two,,three",
        "Sunday",
        "daily",
        "5",
        "aGVsbG8=",
        "2026-02-02T10:00:00Z",
        "Mon, 02 Feb 2026 10:00:00 +0100",
        "2 Feb 26",
        "20260202",
        "1970-01-01",
        "en_US",
    ]
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        "type mode href url uri rel isPermaLink term label scheme domain text length src start xml:lang lang xml:base "  # noqa: SIM905
        "base rdf:about media:type version lastmod xmlns".split()
    ),
    st.sampled_from(
        [
            "html",
            "xhtml",
            "text",
            "text/plain",
            "image/png",
            "base64",
            "self",
            "alternate",
            "enclosure",
            "false",
            "",
            "https://base.example/a/",
            "sub/",
            "at://did:plc:1/post/1",
            "de_AT",
            "http://www.w3.org/1999/xhtml",
            "http://www.w3.org/2000/svg",
        ]
    ),
    max_size=2,
)


def element(name: str, attributes: dict[str, str], inner: str) -> str:
    written = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{name}{written}>{inner}</{name}>"


LEAVES = st.builds(element, st.sampled_from(NAMES), st.just({}) | ATTRIBUTES, TEXTS.map(escape))
INNER = st.recursive(
    st.lists(LEAVES, min_size=1, max_size=4).map("".join),
    lambda inner: st.lists(LEAVES | st.builds(element, st.sampled_from(NAMES), ATTRIBUTES, inner), max_size=4).map(
        "".join
    ),
    max_leaves=6,
)
ITEMS = st.lists(st.builds(lambda name, inner: f"<{name}>{inner}</{name}>", st.sampled_from(["item", "entry"]), INNER))
FRAMES: list[Callable[[str, str], str]] = [
    lambda feed, items: rss(feed + items, ""),
    lambda feed, items: rss(items + feed),
    lambda feed, items: atom(feed + items + feed),
    lambda feed, items: atom(items, "xml:base='https://example.org/b/' xml:lang='en_GB'") + "" * len(feed),
    lambda feed, items: RDF.format(namespace='xmlns="http://purl.org/rss/1.0/"').replace(
        "<textinput>", items + "<textinput>"
    ),
    lambda feed, items: atom(f"{feed}{items}{feed}", "xml:base='/b/'"),
    lambda feed, items: atom(feed + items, "xmlns:cc='http://backend.userland.com/creativeCommonsRssModule'"),
    lambda feed, items: f'<feed xmlns="http://purl.org/atom/ns#" version="0.3">{feed}{items}</feed>',
]


def test_strict_reads_a_feed_as_lenient_does_or_not_at_all() -> None:
    read, declined = [], []

    @settings(max_examples=max(200, settings().max_examples))  # of few it may decline nearly all
    @given(st.sampled_from(FRAMES), INNER, ITEMS)
    def compare(frame: Callable[[str, str], str], feed: str, items: list[str]) -> None:
        document = with_prefixes(frame(feed, "".join(items)))
        try:
            strict, lenient = read_by_both(document)
        except Declined:
            declined.append(document)
        else:
            read.append(document)
            assert strict == lenient

    compare()
    assert len(read) > len(declined) / 10  # else it shows nothing


YEARS = st.sampled_from(["2026", "1970", "0001", "9999", "26"])
TWO_DIGITS = st.integers(0, 59).map("{:02}".format)
ZONES = st.sampled_from(["Z", "z", "", "+01:00", "-0530", "+01", "GMT", "UTC", "EST", "pdt", "+0100"])
ISO_DATES = st.builds(
    "{}-{}-{}T{}:{}:{}{}".format,
    YEARS,
    TWO_DIGITS,
    TWO_DIGITS,
    *[TWO_DIGITS] * 3,
    ZONES.filter(lambda zone: zone not in {"-0530", "EST", "pdt"}),
)
DAYS = st.sampled_from(["Mon, ", "Tuesday ", "thu,", "", "Sat  ", "Xyz, "])
MONTHS = st.sampled_from(["Jan", "feb", "Sept", "October", "Dez", "1"])
MAIL_DATES = st.builds("{}{} {} {} {}:{}:{} {}".format, DAYS, TWO_DIGITS, MONTHS, YEARS, *[TWO_DIGITS] * 3, ZONES)


@given(ISO_DATES | MAIL_DATES | st.text("0123456789-:TZ JanFebMGTES", max_size=20).map("Mon, {} 10:00".format))
def test_a_date_that_feedparser_reads_too_is_read_as_it_does(text: str) -> None:
    """But for zones that it does not know (`-0530`, `EST` in ISO 8601), and what it fills up with today's date."""
    moment, other = read_date(text), from_struct(_parse_date(text))
    is_whole = re.match(r"\d{4}-\d\d-\d\dT|\w+,? *\d\d [A-Z]\w\w \d{4} ", text)
    if isinstance(moment, datetime) and other and other.year > 1 and is_whole:  # feedparser knows nothing before 0001
        assert moment == other
