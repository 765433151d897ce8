"""Of several elements with one meaning the same one counts in each tier, in any order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import permutations

import pytest

from services.fetcher.parse.formats.salvage.pieces import read_piece
from shared.wire.results import Entry
from tests.unit.parse.feeds import atom, read, read_by_both, rss, with_prefixes

FORMATS: list[Callable[[str], str]] = [
    lambda inner: rss(f"<item>{inner}</item>"),
    lambda inner: atom(f"<entry>{inner}</entry>"),
]


def read_in_all_orders(elements: list[str]) -> list[Entry]:
    found: list[Entry] = []
    for form in FORMATS:
        for order in permutations(elements):
            document = with_prefixes(form("".join(order)))
            strict, lenient = read_by_both(document)
            assert strict == lenient
            found += read(document).entries
    return found


TITLES = [
    "<title>own</title>",
    "<itunes:title>itunes</itunes:title>",
    "<dc:title>dc</dc:title>",
    "<media:title>media</media:title>",
]


@pytest.mark.parametrize("first", range(4))
def test_the_first_title_of_the_table_counts_wherever_it_stands(first: int) -> None:
    expected = ["own", "itunes", "dc", "media"][first]
    assert {entry.title for entry in read_in_all_orders(TITLES[first:])} == {expected}
    assert read_piece("".join(reversed(TITLES[first:]))).text("title").value != "own" or not first


@pytest.mark.parametrize("empty", ["<title/>", "<title> </title>", '<title type="html"></title>'])
def test_an_empty_title_counts_for_none(empty: str) -> None:
    assert {entry.title for entry in read_in_all_orders([empty, *TITLES[2:]])} == {"dc"}


def test_a_title_of_the_entry_goes_before_one_of_a_file_within() -> None:
    media = '<media:content url="u"><media:title>file</media:title></media:content>'
    assert {entry.title for entry in read_in_all_orders([media, TITLES[3]])} == {"media"}
    assert {entry.title for entry in read_in_all_orders([media, TITLES[2]])} == {"dc"}


def test_other_texts_never_take_the_place_of_the_entrys_own() -> None:
    others = [
        "<itunes:summary>itunes</itunes:summary>",
        "<media:description>media</media:description>",
        "<dc:description>dc</dc:description>",
    ]
    assert {entry.body for entry in read_in_all_orders(["<summary>own</summary>", *others])} == {"own"}
    assert {entry.body for entry in read_in_all_orders(["<description/>", *others])} == {"itunes"}


def day(number: int) -> datetime:
    return datetime(2026, 2, number, tzinfo=UTC)


PUBLISHED = [
    "<published>2026-02-01</published>",
    "<dcterms:issued>2026-02-02</dcterms:issued>",
    "<created>2026-02-03</created>",
    "<dcterms:created>2026-02-04</dcterms:created>",
]
UPDATED = [
    "<updated>2026-02-05</updated>",
    "<dcterms:modified>2026-02-06</dcterms:modified>",
    "<dc:date>2026-02-07</dc:date>",
]


@pytest.mark.parametrize("first", range(4))
def test_the_first_date_of_the_table_is_that_of_publication(first: int) -> None:
    elements = ["<title>t</title>", UPDATED[2], *PUBLISHED[first : first + 2]]
    assert {entry.published_at for entry in read_in_all_orders(elements)} == {day(first + 1)}


@pytest.mark.parametrize("first", range(3))
def test_the_first_date_of_the_table_is_that_of_the_update(first: int) -> None:
    found = read_in_all_orders(["<title>t</title>", *UPDATED[first:]])
    assert {(entry.updated_at, entry.published_at) for entry in found} == {(day(first + 5), day(first + 5))}


@pytest.mark.parametrize("empty", ["<updated/>", "<updated>soon</updated>", "<modified> </modified>"])
def test_a_date_that_says_nothing_counts_for_none(empty: str) -> None:
    found = read_in_all_orders(["<title>t</title>", empty, UPDATED[2]])
    assert {entry.updated_at for entry in found} == {day(7)}
    found = read_in_all_orders(["<title>t</title>", UPDATED[0], "<modified/>"])
    assert {entry.updated_at for entry in found} == {day(5)}


def test_a_feeds_own_title_and_language_count() -> None:
    for order in permutations(["<title>own</title>", "<dc:title>dc</dc:title>", "<media:title>media</media:title>"]):
        for document in (
            rss("<item><title>t</title></item>", "".join(order)),
            atom("").replace("<title>News</title>", "".join(order)),
        ):
            strict, lenient = read_by_both(with_prefixes(document))
            assert strict == lenient
            assert strict.title.value == "own"
    for channel in (
        "<language>de</language><dc:language>en</dc:language>",
        "<dc:language>en</dc:language><language>de</language>",
        "<language/><dc:language>de</dc:language>",
    ):
        strict, lenient = read_by_both(with_prefixes(rss("", channel)))
        assert strict == lenient
        assert strict.language == "de"


def test_salvage_has_the_same_order() -> None:
    piece = read_piece(
        "<dc:title>dc</dc:title><title>own</title><dc:date>2026-02-07</dc:date><updated>2026-02-05</updated>"
        '<atom:link rel="self" href="https://example.org/s"/><atom:link href="https://example.org/a"/>'
        "<link>https://example.org/l</link>"
    )
    assert (piece.text("title").value, piece.plain("updated")) == ("own", "2026-02-05")
    assert piece.link() == "https://example.org/l"
