"""The lenient tier: feedparser's tolerance for every kind of RSS, Atom, RDF and CDF.

Decoding, DOCTYPE and references are settled before feedparser sees the text (`charset`, `prolog`), and its parsers are
bounded (`guarded`). Relative URLs stay relative unless `xml:base` says otherwise, so that `entries` can resolve them;
embedded HTML is neither resolved nor sanitised: it becomes text.
"""

from __future__ import annotations

import re
from dataclasses import replace

from services.fetcher.parse.document import FEED_ROOTS, Document
from services.fetcher.parse.extents import trim
from services.fetcher.parse.fields import raw_entry, raw_feed
from services.fetcher.parse.formats.lenient.guarded_feedparser import MAX_ENTRIES, run_feedparser
from services.fetcher.parse.model import Deadline, NotAFeed, ParseError, RawFeed, Unparseable, check_time

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
    except Exception as error:  # feedparser names no errors and has many; one odd body is a fact to record, no bug
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
    entries = [entry for found in reader.entries if not (entry := raw_entry(dict(found))).is_empty()]
    feed = raw_feed(
        dict(reader.feeddata),
        entries,
        is_atom=str(reader.version).startswith("atom"),
        hours=reader.skipped_hours,
        days=reader.skipped_days,
        warnings=warnings,
    )
    empty = len(reader.entries) - len(entries)
    return replace(feed, empty=empty) if empty else feed


def _is_complete(source: str) -> bool:
    """Return whether the last thing in `source` is the end tag of a feed's root: nothing after it was cut off."""
    last_tag = source.rpartition("<")[2].lower()
    return last_tag.startswith("/") and last_tag.strip("/> \t\r\n").rpartition(":")[2] in FEED_ROOTS
