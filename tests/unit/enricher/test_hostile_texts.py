"""Whatever a text is, every part deals with it in bounded time, and what it says is true of the text."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import cycle, islice

import pytest

from services.enricher.enriching import CUT, FAILED, enrich_entries
from services.enricher.parts import Parts
from services.enricher.settings import EnrichSettings
from services.enricher.text import MOST_BODY, MOST_TITLE
from shared.wire.enrichment import Enrichment
from shared.wire.results import Entry
from tests.factories import make_entry

MILLION = 1_000_000
PATTERNS = {
    "one letter": "a",
    "one capital": "A",
    "one digit": "7",
    "one space": " ",
    "line ends": "\n",
    "one emoji": "😀",
    "emoji of several characters": "👨‍👩‍👧‍👦🇩🇪",
    "combining marks": "\u0301",
    "zero width": "\u200b\u200d\ufeff",
    "lone surrogates": "\ud83d\udc00\ud800",
    "controls": "\x00\x01\x7f\x85",
    "words": "the prime minister of France said ",
    "words of one letter": "a b ",
    "names": "Angela Merkel ",
    "capitalised": "Aa ",
    "numbers": "1,234.56 ",
    "right to left": "رئيس الوزراء \u202eeman\u202c ",
    "mixed scripts": "Москва the 東京 Αθήνα ",
    "Chinese": "北京举行新闻发布会",
    "Thai": "รัฐบาลประกาศ",
    "tags": "<p><b>",
    "tags without ends": "<a href=",
    "brackets": "<",
    "references": "&amp;&#x41;&nbsp",
    "ampersands": "&",
    "addresses": "https://news.example/a?b=c ",
    "half an address": "a.",
    "mail addresses": "a@b.example ",
    "at signs": "a@",
    "hashtags": "#news ",
    "quotes": "\"'“”",
    "hyphens": "a-",
    "dots and spaces": ". ",
    "apostrophes": "l'",
    "parentheses": "((((",
    "a regular expression's bane": "aaaaaaaaaaaaaaaaaaaaaaaaaaa!",
    "another": "x=x ",
    "last characters": "\U0010ffff\uffff",
}
WHOLE = {"nothing": "", "a space": " ", "a letter": "x", "a surrogate": "\udfff", "a bomb": "a" * 30 + "!"}


@pytest.fixture(scope="module")
def parts() -> Parts:
    return EnrichSettings().parts()


def entry_of(number: int = 1, **texts: object) -> Entry:
    """Return an entry with these texts, though no feed's reader lets all of them through."""
    return make_entry(number).model_copy(update=texts)


def repeated(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def checked(entry: Entry, found: Enrichment) -> None:
    assert FAILED not in found.flags
    assert (CUT in found.flags) == (len(entry.title) > MOST_TITLE or len(entry.body) > MOST_BODY)
    for entity in found.entities or ():
        assert entity.name.strip()
        for mention in entity.mentions:
            text = entry.title if mention.field == "title" else entry.body
            named = text[mention.start : mention.end]
            assert named, entity
            assert named == named.strip(), entity
    Enrichment.model_validate_json(found.model_dump_json())


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_a_million_characters_are_cut_and_enriched(parts: Parts, pattern: str) -> None:
    text = repeated(pattern, MILLION)
    entries = [entry_of(1, title=text[:MOST_TITLE]), entry_of(2, body=text), entry_of(3, title=text, body=text)]
    assert all(len(entry.body) == MILLION for entry in entries[1:])
    for entry, found in zip(entries, enrich_entries(entries, pattern, parts), strict=True):
        checked(entry, found)


@pytest.mark.parametrize("text", WHOLE.values(), ids=WHOLE)
def test_a_text_with_nothing_to_say_is_enriched(parts: Parts, text: str) -> None:
    entry = entry_of(title=text, body=text, categories=(text,), language=text)
    checked(entry, enrich_entries([entry], text, parts)[0])


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_the_time_grows_with_the_text_at_most(parts: Parts, pattern: str) -> None:
    short, long = (cpu_seconds(parts, repeated(pattern, length)) for length in (MOST_BODY // 8, MOST_BODY))
    assert long < 0.02 or long < 32 * short, "eight times the text: 64 times the time would be quadratic"


def cpu_seconds(parts: Parts, body: str) -> float:
    """Return the least CPU time of some tries."""
    entries = [entry_of(title="", body=body)]

    def tries() -> Iterator[float]:
        for _ in range(5):
            began = time.thread_time()
            enrich_entries(entries, None, parts)
            yield time.thread_time() - began

    return min(tries())


def test_a_result_of_thousands_of_entries_is_enriched(parts: Parts) -> None:
    texts = islice(cycle(PATTERNS.values()), 3000)
    entries = [entry_of(n, title=repeated(text, 60), body=repeated(text, 300)) for n, text in enumerate(texts)]
    found = enrich_entries(entries, "en", parts)
    assert len(found) == len(entries)
    for entry, enrichment in zip(entries, found, strict=True):
        checked(entry, enrichment)


def test_the_order_of_entries_is_kept(parts: Parts) -> None:
    entries = [entry_of(n, title=text, body="") for n, text in enumerate(("", "The railway will be extended", "😀"))]
    together = enrich_entries(entries, None, parts)
    alone = [enrich_entries([entry], None, parts)[0] for entry in entries]
    assert [found.sketch for found in together] == [found.sketch for found in alone]
    assert [found.language == "und" for found in together] == [found.language == "und" for found in alone]
