"""Where the entries of a document begin and end, by its tags alone: what is left out before a parser sees it.

Two things are. *An entry that the document ends in*, since a download broke off: half a title or half an address would
make another article of it, and the whole one comes with the next fetch. *Entries beyond a number*: not the last ones
but the oldest, by the dates that stand in their source.

For documents that are not well-formed. Comments and CDATA are passed over; time is proportional to the length.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.fetcher.parse.dates import Date, read_date
from services.fetcher.parse.dates.loose import LooseDates
from services.fetcher.parse.model import Deadline, check_time, timely

_TOKEN = re.compile(
    r"<(?:(?P<raw>!\[CDATA\[|!--)"
    r"|(?:[\w.-]++:)?+(?P<start>item|entry)(?=[\s/>]|\Z)(?P<rest>[^<>]*+>?)"
    r"|/(?:[\w.-]++:)?+(?P<end>item|entry|rss|rdf|feed|channel)\s*+>)",
    re.IGNORECASE,
)
# Of a feed that is whole, although a comment or CDATA in it is never closed.
_END = re.compile(r"</(?:item|entry)\s*+>\s*+(?:</channel\s*+>\s*+)?</(?:rss|feed|rdf:RDF)\s*+>\s*+\Z", re.IGNORECASE)
_MAX_END_CHARS = 1_000
_RAW_ENDS = {"![CDATA[": "]]>", "!--": "-->"}
_DATE = re.compile(
    r"<(?:[\w.-]++:)?+(pubDate|published|issued|created|date|updated|modified)(?=[\s>])[^<>]*+>"
    r"\s*+(?:<!\[CDATA\[)?+([^<\]]{1,100}+)",
    re.IGNORECASE,
)
_OF_PUBLICATION = frozenset({"pubdate", "published", "issued"})
_MAX_DATES = 10
"""That are looked at in one entry."""

_NO_DATE = datetime.min.replace(tzinfo=UTC)
_ANY_TIME = datetime(9000, 1, 1, tzinfo=UTC)
"""Dates are only compared with each other here; what is counted from now is newer than all others."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A document without what was left out, and warnings that count that."""

    source: str
    warnings: tuple[str, ...] = ()


def trim(source: str, most: int, deadline: Deadline | None = None) -> Trimmed:
    """Return `source` without an entry that it ends in, and with at most `most` entries, the newest.

    Raises:
        OutOfTime: the deadline has passed.
    """
    starts, is_cut, end = find_entries(source)
    warnings: list[str] = []
    if is_cut:
        source, end = source[: starts[-1]], starts[-1]
        del starts[-1]
        warnings.append("entries cut off with the end of the feed and left out: 1")
    if len(starts) > most:
        bounds = [*starts, end]
        kept = newest(
            [_date(source, bounds[at], bounds[at + 1], deadline) for at in range(len(starts))], most, deadline
        )
        pieces = [source[bounds[at] : bounds[at + 1]] for at in kept]
        warnings.append(f"entries beyond the newest {most} not read: {len(starts) - most}")
        source = "".join([source[: starts[0]], *pieces, source[end:]])
    return Trimmed(source, tuple(warnings))


def find_entries(source: str) -> tuple[list[int], bool, int]:
    """Return where entries begin, whether the source ends within the last of them, and where that one ends."""
    starts: list[int] = []
    is_open, end, at = False, len(source), 0
    while found := _TOKEN.search(source, at):
        at = found.end()
        if raw := found["raw"]:
            close = source.find(_RAW_ENDS[raw.upper()], at)
            if close < 0:
                is_open = is_open and not _END.search(source, max(at, len(source) - _MAX_END_CHARS))
                break
            at = close + 3
        elif found["start"]:
            starts.append(found.start())
            is_open = not found["rest"].endswith("/>")
            end = len(source) if is_open else at
        elif is_open:
            is_open = False
            end = at if found["end"].lower() in {"item", "entry"} else found.start()
    return starts, is_open, end


def newest(dates: Sequence[Date], most: int, deadline: Deadline | None = None) -> list[int]:
    """Return where the newest `most` of `dates` stand, in their order; without a date counts as older than any."""
    texts = (date for date in dates if isinstance(date, str))
    loose = LooseDates(timely(texts, deadline), now=_ANY_TIME, language=None)

    def moment(at: int) -> datetime:
        check_time(deadline)
        date = dates[at]
        if isinstance(date, str):
            reading = loose.read(date)
            date = reading.moment if reading else None
        return date or _NO_DATE

    return sorted(sorted(range(len(dates)), key=moment, reverse=True)[:most])


def _date(source: str, start: int, end: int, deadline: Deadline | None) -> Date:
    """Return the date of publication that stands there, else the last other one."""
    check_time(deadline)
    date: Date = None
    for found, _ in zip(_DATE.finditer(source, start, end), range(_MAX_DATES), strict=False):
        date = read_date(found[2]) or date
        if date and found[1].lower() in _OF_PUBLICATION:
            break
    return date
