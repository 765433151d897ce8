from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import feedparser
import pytest

from services.fetcher.parse import ParsedFeed, ParseError, parse_feed

NOW = datetime(2026, 11, 22, tzinfo=UTC)
CORPUS = Path(__file__).parents[3].parent / "shared" / "corpus"

OTHER_NUMBER: dict[str, str] = {}
"""Files of which we read another number of entries than feedparser, with the reason. None."""

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
    """Count the entries read: those kept, and those that the warnings count as dropped."""
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
