"""Dates of feeds as aware UTC datetimes. The plain cases; the decayed ones are for feedparser or for later.

No date is None and never "now": an entry without a date is a fact that the ledger knows how to handle.
"""

from __future__ import annotations

import calendar
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

from feedparser.datetimes import _parse_date

FUTURE_TOLERANCE = timedelta(hours=24)
"""Up to here a date in the future is believed: clocks differ, and so do time zones that were forgotten."""

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Before it there was no web; such a date is a default that leaked (1970-01-01, 0001-01-01)."""

_MAX_CHARS = 100
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_CLOCK = r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?"
_W3CDTF = re.compile(rf"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})[Tt]{_CLOCK}([Zz]|[+-][0-9]{{2}}:[0-9]{{2}})?")
_RFC822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?([0-9]{1,2}) +"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* +([0-9]{4}) +"
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))? +(gmt|utc|ut|z|[ecmp][sd]t|[+-][0-9]{4})",
    re.IGNORECASE | re.ASCII,
)
_ZONE_HOURS = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_UNIX = re.compile(r"\d{10}|\d{13}")
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*(Z|[+-]\d\d:?\d\d)?)?", re.IGNORECASE)


def parse_date(raw: str | float | None) -> datetime | None:
    """Return the moment that `raw` names: ISO 8601, RFC 822, or Unix time in seconds or milliseconds; else None.

    A date without a zone is taken as UTC.
    """
    if raw is None:
        return None
    if not isinstance(raw, str):
        return _from_unix(raw)
    text = raw.strip()
    if not text or len(text) > _MAX_CHARS:
        return None
    if _UNIX.fullmatch(text):
        return _from_unix(int(text))
    return _from_iso(text) or _from_rfc822(text)


def from_struct(parsed: object) -> datetime | None:
    """Return the moment of a UTC time tuple, as feedparser gives it; None if it is none or out of range."""
    if not isinstance(parsed, tuple) or len(parsed) != 9:
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(tuple(parsed)), tz=UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def parse_feed_date(text: str) -> datetime | None:
    """Return the moment that feedparser reads from `text`, to the second; the two common forms without asking it."""
    found = _W3CDTF.fullmatch(text)
    try:
        if found:
            year, month, day, hour, minute, second, zone = found.groups()
            moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
            return moment - _offset(zone.replace(":", "")) if zone and zone not in "Zz" else moment
        found = _RFC822.fullmatch(text)
        if found:
            day, month, year, hour, minute, second, zone = found.groups()
            number = _MONTHS.index(month.lower()) // 3 + 1
            moment = datetime(int(year), number, int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
            return moment - _offset(zone)
    except (ValueError, OverflowError):
        pass
    return from_struct(_parse_date(text))


def _offset(zone: str) -> timedelta:
    if zone[0] not in "+-":
        return timedelta(hours=_ZONE_HOURS.get(zone.upper(), 0))
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
    return -offset if zone[0] == "-" else offset


def settle_date(moment: datetime | None, now: datetime) -> tuple[datetime | None, bool]:
    """Return the date to keep, and whether it was clamped.

    More than `FUTURE_TOLERANCE` after `now` becomes `now` (clamped); before `EARLIEST` becomes None.
    """
    if moment is None or moment < EARLIEST:
        return None, False
    if moment > now + FUTURE_TOLERANCE:
        return now.astimezone(UTC), True
    return moment, False


def _from_unix(number: float) -> datetime | None:
    # From 1e11 on (the year 5138 in seconds) a number can only be milliseconds.
    try:
        return datetime.fromtimestamp(number / 1000 if abs(number) >= 1e11 else number, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _from_iso(text: str) -> datetime | None:
    found = _ISO.fullmatch(text)
    if not found:
        return None
    day, clock, zone = found.groups()
    clock = (clock or "00:00").replace(",", ".")
    try:
        moment = datetime.fromisoformat(f"{day}T{clock[:15]}{(zone or 'Z').upper()}")
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _from_rfc822(text: str) -> datetime | None:
    try:
        parts = parsedate_tz(text)
        if parts is None:
            return None
        moment = datetime(*parts[:6], tzinfo=UTC)
        return moment - timedelta(seconds=parts[9] or 0)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
