"""Dates of feeds as aware UTC datetimes.

`read_date` returns a moment. For a date that is ambiguous by itself (`03/04/2026`, `yesterday`) it returns the text,
and `loose.LooseDates` reads that with the feed's other dates and the time of the fetch. feedparser reads the forms
that are unknown here.

A date without a zone is in UTC, one without a time is midnight. A missing date is None and never "now": the writer
knows how to handle entries without a date.
"""

from __future__ import annotations

import calendar
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta

from feedparser.datetimes import (
    _parse_date_asctime,
    _parse_date_greek,
    _parse_date_hungarian,
    _parse_date_iso8601,
    _parse_date_nate,
    _parse_date_onblog,
    _parse_date_perforce,
    _parse_date_rfc822,
    _parse_date_w3dtf,
)

from services.fetcher.parse.dates.clock import Clock, read_clock
from services.fetcher.parse.dates.loose import FUTURE_TOLERANCE, is_loose
from services.fetcher.parse.dates.words import read_words, simplify

EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""There was no web before. An earlier date is some program's default value (1970-01-01, 0001-01-01)."""

Date = datetime | str | None
"""A moment, or the simplified text of a date that `LooseDates` has to read."""

_MAX_CHARS = 100
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_W3CDTF = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]+))?)?"
    r"([Zz]|[+-][0-9]{2}:?[0-9]{2})?"
)
_RFC822 = re.compile(
    r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?([0-9]{1,2}) +"
    r"(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]* +([0-9]{4}) +"
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))? +(gmt|utc|ut|z|[ecmp][sd]t|[+-][0-9]{4})",
    re.IGNORECASE | re.ASCII,
)
_DAYS = frozenset({"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"})
_MONTH_NUMBERS = {_MONTHS[at : at + 3].title(): f"{at // 3 + 1:02}" for at in range(0, 36, 3)}
_ZERO = frozenset({"GMT", "+0000", "-0000", "UTC", "UT", "Z"})
_ZONE_HOURS = {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
_UNIX = re.compile(r"([0-9]{10})(?:\.[0-9]+)?|[0-9]{13}(?:\.0+)?|[0-9]{16}")
_ISO_PARTIAL = re.compile(r"[0-9]{2}-?[0-9]{2}-?[0-9]{2}")
"""Other forms of ISO 8601 would let feedparser insert today's month and day."""
_FEEDPARSERS = (
    _parse_date_w3dtf,
    _parse_date_rfc822,
    _parse_date_asctime,
    _parse_date_perforce,
    _parse_date_hungarian,
    _parse_date_greek,
    _parse_date_nate,
    _parse_date_onblog,
)
_YEAR_FIRST = re.compile(
    r"(?:[^\W\d_]{2,12}\.?,? )?([0-9]{4})([-/.]) ?([0-9]{1,2})\2 ?([0-9]{1,2})\.?(?:\([^()]{1,12}\))?"
    r"(?:[ t,_:;@|-]+(.*))?"
)
_DOTTED = re.compile(r"(?:[^\W\d_]{2,12}\.?,? )?([0-9]{1,2})\. ?([0-9]{1,2})\. ?([0-9]{4}|[0-9]{2})(?![0-9.])(.*)")

_DAY = (
    r"(?P<year>[0-9]{4})(?P<mark>[-/.])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})"
    r"|(?P<year2>(?:19|20)[0-9]{2})(?P<month2>[0-9]{2})(?P<day2>[0-9]{2})"
    r"|(?P<year3>(?:19|20)[0-9]{2})-?w(?P<week>[0-9]{2})(?:-?(?P<weekday>[1-7]))?"
    r"|(?P<year4>(?:19|20)[0-9]{2})-?(?P<ordinal>[0-9]{3})"
)
_TIME = (
    r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:[.,:](?P<fraction>[0-9]+))?)?"
    r"|(?P<hour2>[0-9]{2})(?P<minute2>[0-9]{2})(?:(?P<second2>[0-9]{2})(?:[.,](?P<fraction2>[0-9]+))?)?"
    r"|(?P<hour3>[0-9]{1,2})"
)
_BEFORE_TIME = r"(?:[ t,_;@|-]+|(?<=[0-9]{8}))"
_ISO = re.compile(
    rf"(?:{_DAY})(?:{_BEFORE_TIME}(?:{_TIME})(?P<rest>\s*(?:[^0-9:.,/\s].*)?)|(?P<rest2>\s*(?:z|[+\u2212].*)?))"
)


def read_date(raw: str | float | None) -> Date:
    """Return the moment of `raw`, its text if `LooseDates` has to read it, or None if it is no date."""
    if raw is None:
        return None
    if not isinstance(raw, str):
        return _from_unix(raw)
    text = raw.strip()
    if not text or len(text) > _MAX_CHARS:
        return None
    return _usual(text) or _plain(text) or _by_digits(text) or _by_words(text)


def from_struct(parsed: object) -> datetime | None:
    """Return the moment of feedparser's UTC time tuple; None if it is something else or out of range."""
    if not isinstance(parsed, tuple) or len(parsed) != 9:
        return None
    try:
        return datetime.fromtimestamp(calendar.timegm(tuple(parsed)), tz=UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        return None


def bound_date(moment: datetime | None, now: datetime) -> tuple[datetime | None, bool]:
    """Return the date, and whether it was clamped.

    A date more than `FUTURE_TOLERANCE` after `now` becomes `now` (clamped). A date before `EARLIEST` becomes None.
    """
    if moment is None or moment < EARLIEST:
        return None, False
    if moment > now + FUTURE_TOLERANCE:
        return now.astimezone(UTC), True
    return moment, False


def _usual(text: str) -> datetime | None:
    """Read the two most frequent forms, as `_plain` does, at a third of its cost.

    They are `Mon, 02 Feb 2026 10:00:00 +0000` and `2026-02-02T10:00:00Z`.
    """
    try:
        if text[3:5] == ", ":
            if text[:3] in _DAYS and text[7:12:4] == "  " and text[16:26:3] == " :: ":
                zone = text[26:]
                zone = "+00:00" if zone in _ZERO else zone if len(zone) == 5 else "?"
                moment = datetime.fromisoformat(
                    f"{text[12:16]}-{_MONTH_NUMBERS[text[8:11]]}-{text[5:7]}T{text[17:25]}{zone}"
                )
                return moment if zone == "+00:00" else moment.astimezone(UTC)
        elif len(text) in {20, 25} and text[4:8:3] == "--" and text[10:17:3] == "T::" and text[19] in "Z+-":
            moment = datetime.fromisoformat(text)
            return moment if text[19] == "Z" else moment.astimezone(UTC)
    except (ValueError, LookupError, OverflowError):
        pass
    return None


def _plain(text: str) -> datetime | None:
    """Read valid W3CDTF (RFC 3339) and RFC 822."""
    try:
        if found := _W3CDTF.fullmatch(text):
            year, month, day, hour, minute, second, fraction, zone = found.groups()
            moment = datetime(int(year), int(month), int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
            if fraction:
                moment = moment.replace(microsecond=int(fraction[:6].ljust(6, "0")))
            return moment - _offset(zone.replace(":", "")) if zone and zone not in "Zz" else moment
        if found := _RFC822.fullmatch(text):
            day, name, year, hour, minute, second, zone = found.groups()
            month = _MONTHS.index(name.lower()) // 3 + 1
            moment = datetime(int(year), month, int(day), int(hour), int(minute), int(second or 0), tzinfo=UTC)
            return moment - _offset(zone)
    except (ValueError, OverflowError):
        pass
    return None


def _offset(zone: str) -> timedelta:
    if zone[0] not in "+-":
        return timedelta(hours=_ZONE_HOURS.get(zone.upper(), 0))
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:]))
    return -offset if zone[0] == "-" else offset


def _by_digits(text: str) -> datetime | None:
    """Read Unix time, and dates of digits in an unambiguous order: the year first, or dots between."""
    if found := _UNIX.fullmatch(text):
        return _from_unix(float(text) if "." in text else int(text))
    lower = simplify(text)
    if iso := _read_iso(lower):
        day, clock = iso
        return clock.on(day.year, day.month, day.day)
    if found := _YEAR_FIRST.fullmatch(lower):
        time = found[5] or ""
        return read_clock(time if ":" in time else time.replace(".", ":", 2)).on(
            int(found[1]), int(found[3]), int(found[4])
        )
    if found := _DOTTED.fullmatch(lower):
        year = int(found[3]) + (2000 if len(found[3]) == 2 else 0)
        return read_clock(found[4]).on(year, int(found[2]), int(found[1]))
    return None


def _by_words(text: str) -> Date:
    simple = simplify(text)
    found = read_words(simple)
    if found:
        return found
    if is_loose(simple):
        return simple
    for form in (*_FEEDPARSERS, *([_parse_date_iso8601] if _ISO_PARTIAL.fullmatch(text) else [])):
        with suppress(LookupError, ValueError, TypeError, ArithmeticError, AttributeError):  # feedparser documents none
            if moment := from_struct(form(text)):
                return moment
    return None


def _from_unix(number: float) -> datetime | None:
    # From 1e11 on (the year 5138 in seconds) a number can only be milliseconds, from 1e14 on microseconds.
    scale = 1 if abs(number) < 1e11 else 1e3 if number < 1e14 else 1e6
    try:
        return datetime.fromtimestamp(number / scale, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _read_iso(text: str) -> tuple[date, Clock] | None:
    """Return the day and the time of `text` (lower case) in ISO 8601; None if it has another form.

    The basic and the extended forms are read, also those with a week or the day of the year.
    """
    found = _ISO.fullmatch(text)
    day = found and _day(found)
    if not found or not day:
        return None
    hour, minute, second, fraction = (_either(found, name) or "00" for name in ("hour", "minute", "second", "fraction"))
    # A zone follows at once (`101530+0200`): the space tells its digits from those of the time.
    return day, read_clock(f"{hour}:{minute:0>2}:{second:0>2}.{fraction} {_either(found, 'rest')}")


def _day(found: re.Match[str]) -> date | None:
    with suppress(ValueError, OverflowError):
        year = int(_either(found, "year"))
        if found["week"]:
            return date.fromisocalendar(year, int(found["week"]), int(found["weekday"] or 1))
        if found["ordinal"]:
            day = date(year, 1, 1) + timedelta(days=int(found["ordinal"]) - 1)
            return day if day.year == year else None
        return date(year, int(_either(found, "month")), int(_either(found, "day")))
    return None


def _either(found: re.Match[str], name: str) -> str:
    groups = found.groupdict()
    return next((groups[key] for key in (name, *(f"{name}{n}" for n in (2, 3, 4))) if groups.get(key)), "")
