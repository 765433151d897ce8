"""The pace that a feed asks for: RSS `ttl`, `skipHours`, `skipDays`, and `sy:updatePeriod` / `sy:updateFrequency`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from shared.wire.messages import ServerHints

_DAY_SECONDS = 86_400.0
_PERIOD_SECONDS = {
    "hourly": 3600.0,
    "daily": _DAY_SECONDS,
    "weekly": 7 * _DAY_SECONDS,
    "monthly": 30 * _DAY_SECONDS,
    "yearly": 365 * _DAY_SECONDS,
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MAX_SECONDS = 365 * _DAY_SECONDS
_NUMBER = re.compile(r"\s*(\d{1,9})(?:\.\d*)?\s*")


def read_hints(
    *, ttl: str = "", period: str = "", frequency: str = "", hours: Iterable[str] = (), days: Iterable[str] = ()
) -> ServerHints:
    """Return the hints that these texts give; what is no number or no name of a day is ignored.

    `ttl` is in minutes (RSS 2.0) and goes before `period`/`frequency` (RSS 1.0 syndication: `frequency` times per
    `period`, once if it is not said). Hours are 0–23 UTC; 24 is midnight too (RSS 0.91). Monday is 0. At most a year.
    """
    return ServerHints(
        ttl_seconds=_ttl_seconds(ttl) or _period_seconds(period, frequency),
        skip_hours=tuple(sorted({hour % 24 for hour in map(_number, hours) if hour is not None and hour <= 24})),
        skip_days=tuple(sorted({_DAYS.index(day) for day in (text.strip().lower() for text in days) if day in _DAYS})),
    )


def _ttl_seconds(ttl: str) -> float | None:
    minutes = _number(ttl)
    return min(minutes * 60.0, _MAX_SECONDS) if minutes else None


def _period_seconds(period: str, frequency: str) -> float | None:
    seconds = _PERIOD_SECONDS.get(period.strip().lower())
    return seconds / (_number(frequency) or 1) if seconds else None


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) if found else None
