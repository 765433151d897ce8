"""Hostile bodies: reading them takes time and memory in proportion to their length."""

from __future__ import annotations

import time
import tracemalloc
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest

from services.fetcher.parse import OutOfTime, ParseError, Unparseable, parse_feed
from services.fetcher.parse.dates.loose import LooseDates
from services.fetcher.parse.document import MAX_ATTRIBUTES
from services.fetcher.parse.formats.jsonfeed import MAX_CONTAINERS
from services.fetcher.parse.formats.lenient import bounded_feedparser as bounds
from services.fetcher.parse.formats.lenient.guarded_feedparser import run_feedparser
from services.fetcher.parse.identity import content_hash
from services.fetcher.parse.text.links import MAX_BASE_CHARS, absolute
from services.fetcher.parse.text.marks import MAX_MARKS, stream_safe
from tests.unit.parse.feeds import NOW, URL, atom, item, read, rss

MARKS = "\u0301\u0316"
"""Of two classes: a run of these in turn is sorted by insertion."""
ATTRIBUTE = "a#='>' "
ITEM = "<item><title>t</title></item>"
BROKEN = "<item><title>&</title></b></item>"


def entry(inner: str, after: str = "") -> str:
    return rss(f"<item><title>t</title>{inner}</item>{after}")


def numbered(unit: str, count: int) -> str:
    return "".join([unit.replace("#", str(number)) for number in range(count)])


def a_date(number: int) -> str:
    return f"{number % 12 + 1:02}/{number // 12 % 12 + 1:02}/{2025 - number // 144}"


def tag(attributes: str) -> str:
    return f"<x {attributes}/>"


def json(items: str) -> str:
    return f'{{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{items}]}}'


BODIES: dict[str, tuple[int, Callable[[int], str]]] = {
    "marks in a title": (4_000, lambda n: rss(f"<item><title>{MARKS * n}</title></item>")),
    "marks by reference": (4_000, lambda n: rss(f"<item><title>{'&#x301;&#x316;' * n}</title></item>")),
    "marks in JSON": (4_000, lambda n: json('{"id":1,"content_text":"' + "\\u0301\\u0316" * n + '"}')),
    "marks in a host": (4_000, lambda n: entry(f"<link>http://a{MARKS * n}</link>")),
    "marks in a base": (4_000, lambda n: entry(f"<x xml:base='http://a{MARKS * n}'/><link>b</link></b>")),
    "marks in an enclosure": (4_000, lambda n: entry(f"<enclosure url='//a{MARKS * n}'/></b>")),
    "white space in an address": (4_000, lambda n: entry(f"<enclosure url='a{' ' * n}b'/>")),
    "DTDs without end": (1_000, lambda n: "<!DOCTYPE a[>" * n + rss(ITEM)),
    "brackets of a DTD": (1_000, lambda n: "<!DOCTYPE a " + "[]" * n + rss(ITEM)),
    "quotes of DTDs": (1_000, lambda n: "<!DOCTYPE a['>\"" * n + rss(ITEM)),
    "entities": (1_000, lambda n: "<!DOCTYPE a[" + numbered("<!ENTITY e# 'x'>", n) + "]>" + entry("&e1;" * n)),
    "attributes": (1_000, lambda n: entry(tag(numbered("a#='' ", n)) + "</b>")),
    "attributes with brackets": (1_000, lambda n: entry(tag(numbered("a#='>' ", n)) + "</b>")),
    "attributes of a broken tag": (1_000, lambda n: entry("<x " + 'a=">" ' * n, BROKEN)),
    "namespaces": (1_000, lambda n: entry(numbered("<x xmlns:x#='u#'/>", n))),
    "a long namespace": (500, lambda n: entry(f"<y xmlns='{'u' * 40 * n}'>{'<a/>' * n}</y>")),
    "declarations of XLink": (
        1_000,
        lambda n: entry(tag(numbered("xmlns:a#='http://www.w3.org/1999/xlink' ", n))),
    ),
    "a long base": (200, lambda n: rss(f"<x xml:base='http://a/{'b' * 100 * n}'>{'<a/>' * n}</x>", "")),
    "a base that grows": (200, lambda n: entry("<x xml:base='abcdefgh/'>" * n)),
    "a long language": (200, lambda n: entry(f"<x xml:lang='a_{'b' * 100 * n}'>{'<rights>a</rights>' * n}</x></b>")),
    "pieces of white space": (
        16_000,
        lambda n: atom(f"<entry><title>t</title><content type='xhtml'>{' <?a?>' * n}<svg/></content></entry>"),
    ),
    "keywords": (2_000, lambda n: entry(f"<itunes:keywords>{numbered('#,', n)}</itunes:keywords>")),
    "spans of validity": (300, lambda n: entry(f"<dcterms:valid>{'start=x;' * n}</dcterms:valid></b>")),
    "coordinates": (2_000, lambda n: entry(f"<georss:line>{'1 ' * n}</georss:line></b>")),
    "a long date": (2_000, lambda n: entry(f"<pubDate>{'03/04/2026 ' * n}</pubDate></b>")),
    "dates without an order": (
        500,
        lambda n: rss("".join([f"<item><title>{at}</title><pubDate>{a_date(at)}</pubDate></item>" for at in range(n)])),
    ),
    "nesting": (500, lambda n: entry("<p>" * n)),
    "escaped markup": (1_000, lambda n: entry(f"<description>{'&lt;b id=1>' * n}</description>")),
    "empty items": (1_000, lambda n: rss("<item/>" * n)),
    "items of JSON": (1_000, lambda n: json("{}," * n + "1")),
}


@pytest.mark.parametrize("name", BODIES)
def test_the_time_grows_with_the_length_and_not_with_its_square(name: str) -> None:
    length, body = BODIES[name]
    short, long = least_seconds(body(length)), least_seconds(body(8 * length))
    assert long < 8 * 2.5 * short + 0.01  # by its square it would be 64 times as long


def least_seconds(text: str) -> float:
    body, spent = text.encode(), []
    for _ in range(2):
        started = time.thread_time()
        with suppress(ParseError):
            parse_feed(body, url=URL, content_type=None, now=NOW, keep_html=True)
        spent.append(time.thread_time() - started)
    return min(spent)


# Combining marks


@pytest.mark.parametrize(
    "text",
    ["", "plain", "Ca\u0301fe\u0301", "שָׁלוֹם", "เก้าอี้", "a" + MARKS * (MAX_MARKS // 2), ("a" + MARKS * 15) * 5],
)
def test_a_text_without_a_long_run_of_marks_stays_as_it_is(text: str) -> None:
    assert stream_safe(text) is text


def test_the_hash_of_ordinary_texts_is_that_of_their_normal_form() -> None:
    assert content_hash("Cafe\u0301", "e\u0316\u0301") == content_hash("Caf\u00e9", "e\u0301\u0316")


@pytest.mark.parametrize("length", [31, 32, 60, 61, 1000])
@pytest.mark.parametrize("before", ["", "a", "aa" * 31])
def test_a_long_run_of_marks_is_broken_up(length: int, before: str) -> None:
    text = before + "\u0301" * length + "b"
    safe = stream_safe(text)
    assert safe.replace("\u034f", "") == text
    assert "\u0301" * (MAX_MARKS + 1) not in safe


def test_all_that_is_decomposed_to_marks_counts_as_one() -> None:
    for code in range(0x110000):
        first = unicodedata.normalize("NFD", chr(code))[0]
        if unicodedata.combining(first):
            assert stream_safe(chr(code) * 31) != chr(code) * 31, hex(code)


# Bounds


def test_attributes_beyond_a_number_are_dropped_with_a_warning() -> None:
    body = entry(f"<enclosure {numbered(ATTRIBUTE, MAX_ATTRIBUTES - 1)} url='/1' length='5' b='c'/>")
    parsed = read(body)
    assert parsed.warnings == ("more markup than any feed needs: cut",)
    assert [(file.url, file.length) for file in parsed.entries[0].enclosures] == [("https://example.org/1", None)]
    assert read(body.replace("a7='>'", "").replace("b='c'", "")).entries[0].enclosures[0].length == 5


@pytest.mark.parametrize("name", ["xml:base", "xml:lang"])
def test_a_scope_that_is_too_long_is_none(name: str) -> None:
    parsed = read(atom("<entry><title>t</title><link href='a'/></entry>", f"{name}='http://b.example/{'b' * 2000}/'"))
    assert parsed.entries[0].url == "https://example.org/feeds/a"
    assert parsed.entries[0].language is None


def test_a_long_address_is_no_base_for_others() -> None:
    assert absolute("x", f"https://example.org/{'a' * MAX_BASE_CHARS}/", URL) == "https://example.org/feeds/x"


def test_what_is_nested_too_deep_goes_to_salvage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_OPEN", 500)
    body = rss("<item><title>t</title><link>http://a.example/</link></item>" + "<item><x>" + "<p>" * 501)
    assert read(body).tier == "salvage"


def test_the_loose_parser_finds_the_end_of_a_tag_as_feedparser_does() -> None:
    parser, _ = run_feedparser("<rss><x a='>' b=\">\" c='d<' e><item><title>a</title></item></b></rss>")
    assert [found["title"] for found in parser.entries] == ["a"]


def test_empty_items_are_dropped_and_counted() -> None:
    assert read(rss("<item/>" * 500 + ITEM)).warnings == ("entries without url, title and text dropped: 500",)
    parsed = read(json("{}," * 500 + '{"id":1,"title":"t"}'))
    assert [entry.title for entry in parsed.entries] == ["t"]
    assert parsed.warnings == ("entries without url, title and text dropped: 500",)


@pytest.mark.parametrize("unit", ["{},", "[],", '{"":0},'])
def test_json_with_more_in_it_than_any_feed_has_is_refused_before_it_is_decoded(unit: str) -> None:
    with pytest.raises(Unparseable, match="more objects"):
        read(json(unit * MAX_CONTAINERS + "1"))


def test_json_asks_the_deadline_for_each_item() -> None:
    asked = iter(range(100))
    with pytest.raises(OutOfTime):
        parse_feed(
            json("{}," * 1000 + "1").encode(),
            url=URL,
            content_type=None,
            now=NOW,
            deadline=lambda: next(asked) >= 99,
        )


def test_the_last_of_two_lists_of_items_counts() -> None:
    body = '{"title":"t","items":[{"title":"a"}],"items":[{"title":"b"}]}'
    assert [entry.title for entry in read(body).entries] == ["b"]


@pytest.mark.parametrize("tail", ["", "}}", "} x", ",}", ":1}", "1}"])
def test_json_that_is_broken_behind_its_items_is_broken(tail: str) -> None:
    parsed = read('{"title":"t","items":[{"title":"a"}]' + tail)
    assert parsed.tier == "salvage"


def test_more_dates_of_one_kind_than_anyone_should_send_are_read_in_order() -> None:
    texts = ["03/04/2026", "04/03/2026", "25/03/2026"]
    reading = LooseDates(texts, now=NOW, language=None).read("05/04/2026")
    assert reading
    assert reading.moment == datetime(2026, 4, 5, tzinfo=UTC)
    assert not reading.is_ambiguous


def test_the_marks_of_a_title_are_kept() -> None:
    assert item(f"<title>a{MARKS * 100}</title>").title == f"a{MARKS * 100}"


@pytest.mark.parametrize(
    "body",
    [
        rss("<item/>" * 20_000),
        json("{}," * 40_000 + "1"),
        json('{"":0},' * 20_000 + "1"),
        entry("<link href='/'/>" * 5_000),
        entry("<x " + "a='>' " * 20_000, BROKEN),
        entry(f"<x xml:lang='a_{'b' * 30_000}'>{'<rights>a</rights>' * 500}</x></b>"),
        entry(f"<x xml:base='http://a.example/{'b' * 30_000}/'>{'<rights>a</rights>' * 500}</x></b>"),
    ],
    ids=lambda body: body[50:90],
)
def test_the_memory_of_a_parse_is_a_multiple_of_its_body(body: str) -> None:
    raw = body.encode()
    tracemalloc.start()
    try:
        with suppress(ParseError):
            parse_feed(raw, url=URL, content_type=None, now=NOW)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 60 * len(raw)
