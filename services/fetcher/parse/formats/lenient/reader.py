"""The lenient tier: reads every kind of RSS, Atom, RDF and CDF as tolerantly as feedparser.

feedparser gets decoded text without DOCTYPE and named references (`document`), and its parsers are bounded
(`guarded_feedparser`). URLs without an `xml:base` stay relative, so that `entries` can resolve them. Embedded HTML is
neither resolved nor sanitised, since it becomes text.
"""

from __future__ import annotations

import re
from dataclasses import replace

from services.fetcher.parse.document import Document
from services.fetcher.parse.extents import trim
from services.fetcher.parse.fields import from_feedparser, raw_entry, raw_feed
from services.fetcher.parse.formats.lenient.guarded_feedparser import MAX_ENTRIES, run_feedparser
from services.fetcher.parse.model import Deadline, NotAFeed, ParseError, RawFeed, Unparseable, check_time

_ROOTS = frozenset({"rss", "feed", "rdf", "channel"})
_ENTRY = re.compile(r"<(?:[\w.-]+:)?(?:item|entry)[\s/>]", re.IGNORECASE)


def read_lenient(document: Document, deadline: Deadline | None = None) -> RawFeed:
    """Return the feed in `document`, well-formed or not.

    Raises:
        NotAFeed: there is neither a channel nor an entry.
        Unparseable: it is too broken to give an entry, or not read in time.
    """
    source, warnings = document.source, list(document.warnings)
    trimmed = trim(source, MAX_ENTRIES, deadline)
    check_time(deadline)
    try:
        reader, problem = run_feedparser(trimmed.source, deadline)
    except ParseError:
        raise
    except Exception as error:  # feedparser documents no errors and raises many
        raise Unparseable(f"a feed on which feedparser fails with {type(error).__name__}") from error
    if problem and not reader.entries and (_ENTRY.search(source) or not _is_complete(source)):
        raise Unparseable(f"malformed XML without a readable entry ({problem})")
    if not reader.entries and not reader.version and not reader.feeddata:
        raise NotAFeed("XML without a channel or an entry")
    if problem:
        warnings.append(f"malformed XML ({problem}), read leniently")
    warnings += trimmed.warnings
    if len(reader.entries) > MAX_ENTRIES:
        warnings.append(f"reading stopped at {MAX_ENTRIES} entries")
    # Plain dicts: feedparser's own answer with `published` when asked for `updated`, and warn of it.
    entries = [entry for found in reader.entries if not (entry := raw_entry(from_feedparser(dict(found)))).is_empty()]
    feed = raw_feed(
        from_feedparser(dict(reader.feeddata)),
        entries,
        is_atom=str(reader.version).startswith("atom"),
        hours=reader.skipped_hours,
        days=reader.skipped_days,
        warnings=warnings,
    )
    empty = len(reader.entries) - len(entries)
    return replace(feed, empty=empty) if empty else feed


def _is_complete(source: str) -> bool:
    """Return whether `source` ends with the end tag of a feed's root element: then it was not cut off."""
    last_tag = source.rpartition("<")[2].lower()
    return last_tag.startswith("/") and last_tag.strip("/> \t\r\n").rpartition(":")[2] in _ROOTS
