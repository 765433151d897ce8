from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import feedparser
import pytest

from services.fetcher.parse import ParsedFeed, ParseError, parse_feed
from services.fetcher.parse.document import prepare
from services.fetcher.parse.formats import FORMAT_OF_ROOT
from services.fetcher.parse.formats.lenient import read_lenient
from services.fetcher.parse.formats.lenient.guarded_feedparser import run_feedparser
from services.fetcher.parse.formats.strict import read_strict
from services.fetcher.parse.model import Declined
from services.fetcher.parse.text.charset import decode
from shared.wire.results import Entry

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CORPUS = Path(__file__).parents[4].parent / "shared" / "corpus"

OTHER_NUMBER: dict[str, str] = {
    "feedparser/tests/illformed/rss_incomplete_cdata.xml": "breaks off in the title of its only entry",
}
"""Files of which we read another number of entries than feedparser, with the reason."""

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no corpus of feeds at {CORPUS}")


def files() -> Iterator[tuple[str, bytes]]:
    for path in sorted(CORPUS.rglob("*")):
        if path.suffix in {".xml", ".json"}:
            yield str(path.relative_to(CORPUS)), path.read_bytes()


@pytest.fixture(scope="module")
def outcomes() -> dict[str, ParsedFeed | ParseError]:
    """Read the whole corpus once: 2,160 files in some five seconds."""
    found: dict[str, ParsedFeed | ParseError] = {}
    for name, body in files():
        try:
            found[name] = parse_feed(body, url="https://example.org/feed", content_type=None, now=NOW)
        except ParseError as error:
            found[name] = error
    return found


def count(outcome: ParsedFeed | ParseError) -> int:
    """Return the number of entries read: those kept, and those that the warnings count as dropped."""
    if isinstance(outcome, ParseError):
        return 0
    dropped = (warning.rpartition(": ")[2] for warning in outcome.warnings if warning.startswith("entries "))
    return len(outcome.entries) + sum(map(int, dropped))


def test_no_file_raises_anything_but_a_parse_error(outcomes: dict[str, ParsedFeed | ParseError]) -> None:
    readable = [outcome for outcome in outcomes.values() if isinstance(outcome, ParsedFeed)]
    assert len(readable) > 0.99 * len(outcomes)
    for parsed in readable:
        for entry in parsed.entries:
            assert entry.title
            assert entry.url.startswith(("http://", "https://")) or not entry.url
            assert Entry.model_validate(entry.model_dump()) == entry  # as it was made without a check


def test_as_many_entries_are_read_as_feedparser_reads(outcomes: dict[str, ParsedFeed | ParseError]) -> None:
    differing = {}
    for name, body in files():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"sanitize_html": False, "resolve_relative_uris": False}
            expected = len(feedparser.parse(io.BytesIO(body), **options).entries)
        found = count(outcomes[name])
        if expected and found != expected:
            differing[name] = f"{found} instead of {expected}"
    assert differing.keys() == OTHER_NUMBER.keys(), differing


def test_strict_reads_what_lenient_reads_from_nearly_all_that_is_well_formed() -> None:
    """Compared field by field, before `entries` judges; no file may differ."""
    well_formed: dict[bool, int] = {True: 0, False: 0}  # feedparser's own test cases are odd on purpose
    read = dict(well_formed)
    for name, body in files():
        try:
            document = prepare(decode(body, None).text.lstrip("\ufeff\x00 \t\r\n"), FORMAT_OF_ROOT)
        except ParseError:
            continue
        is_real = not name.startswith("feedparser/")
        well_formed[is_real] += run_feedparser(document.source)[1] is None
        try:
            strict = read_strict(document)
        except Declined:
            continue
        read[is_real] += 1
        assert strict == read_lenient(document), name
    assert read[True] == well_formed[True] > 50
    assert read[False] > 0.975 * well_formed[False] > 1000
