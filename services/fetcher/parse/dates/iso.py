"""Dates in the order of ISO 8601, year first, in its basic and extended forms, also by week and by day of the year."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date, timedelta

from services.fetcher.parse.dates.clock import Clock, read_clock

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


def read_iso(text: str) -> tuple[date, Clock] | None:
    """Return the day and the time of it that `text`, which is lower case, names; None if it is not of this form."""
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
