"""Dates that can't be read alone: `03/04/2026`, `yesterday`, `2 hours ago`, `March 29`.

Whether day or month stands first is decided once for a feed, by the first of these rules that gives an answer:

1. A date of the feed proves it: a number above 12 can't be a month, or only one order falls on the weekday it names.
2. What the caller was told: a person decided it, or an earlier reading proved it.
3. One order would put a date more than a day into the future.
4. The dates are sorted in one order and not in the other: feeds usually list the newest entry first.
5. The language writes the day first wherever it is spoken.
6. A guess: the month is first for en-US, en-PH and `en` without a region, the day for all others.

Only dates decided by rule 6 are `date_ambiguous`. Dates that are relative to the fetch, or lack a year or a day, are
`date_guessed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from services.fetcher.parse.dates.clock import Clock, read_clock
from services.fetcher.parse.dates.words import full_year, month_and_numbers
from shared.wire.jobs import DateOrder

FUTURE_TOLERANCE = timedelta(hours=24)
"""A date this far in the future is accepted: clocks differ, and time zones are forgotten."""

_NUMERIC = re.compile(
    r"(?<!\d)(\d{1,2})\s?([/-])\s?(\d{1,2})\s?\2\s?(\d{4})(?!\d)"
    r"|(?<!\d)(\d{1,2})(/)(\d{1,2})/(\d{2})(?!\d)"
)
_MONTH_FIRST = re.compile(r"en([-_](us|ph|gu|as|pw))?|es[-_](us|pr)", re.IGNORECASE)
_DAY_FIRST = re.compile(
    r"(ar|bg|ca|cs|da|de|el|es|fi|fr|gl|he|hr|id|it|lv|nb|nl|nn|no|pl|pt|ro|ru|sk|sl|sr|tr|uk|vi)"
    r"([-_](?!(us|pr|ca|ph)$)[a-z0-9]+)*|en[-_](au|gb|ie|in|nz|za)",
    re.IGNORECASE,
)
"""`en` and `en-US` are what programs say that were never told a language."""
_MIN_RUN = 3
"""Rule 4 needs so many dates."""

_WEEKDAYS = (
    "mon lun seg maa пон",
    "tue die mar ter din вто",
    "wed mit mer mie qua woe сре",
    "thu don jeu jue gio qui чет",
    "fri fre ven vie sex vri пят",
    "sat sam sab zat суб",
    "sun son dim dom zon вос",
)
"""Beginnings of the weekdays' names, from Monday on: in English, German, the Romance languages, Dutch, Russian."""
_WEEKDAY = {name: day for day, names in enumerate(_WEEKDAYS) for name in names.split()}

_TODAY = (
    "today now heute jetzt hoy ahora aujourd oggi hoje vandaag nu dzis dzisiaj сегодня сеичас сьогодні idag dnes "
    "tanaan bugun azi σημερα 今日 今天 오늘 avui"
)
_YESTERDAY = (
    "yesterday gestern ayer hier ieri ontem gisteren wczoraj вчера вчора igar vcera eilen dun tegnap χθες χτες 昨日 "
    "昨天 어제 ahir"
)
_DAYS_AGO = dict.fromkeys(_TODAY.split(), 0) | dict.fromkeys(_YESTERDAY.split(), 1)
_AGO_WORDS = "ago vor hace il ha fa geleden temu назад тому sedan siden sitten once pred 前 전"
_AGO = frozenset(_AGO_WORDS.split())
_BEGINNINGS = {
    timedelta(seconds=1): "s sec sek seg сек 秒 초",
    timedelta(minutes=1): "m min мин хвил dakika 分 분",
    timedelta(hours=1): "hour hr h stund heure hora ora ore uur godz час timm time saat 時 小 시",
    timedelta(weeks=1): "w week woche semain seman settiman tydz недел viikko veck uge",
    timedelta(days=30): "month monat mois mes miesi месяц manad maned 月 월",
    timedelta(days=365): "y year jahr an ans ano anno jaar rok lat год yil 年 년",
    timedelta(days=1): "d day tag jour dia giorn dag dni dzien день дня gun 日 天 일",
}
"""Beginnings of the names of units. One of one or two letters is the whole name."""

_UNITS = tuple((name, span) for span, names in _BEGINNINGS.items() for name in names.split())
_WORD = re.compile(r"\d+|[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Reading:
    """The moment of a loose date, and how certain it is."""

    moment: datetime
    is_guessed: bool = False
    is_ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class _Numeric:
    first: int
    second: int
    year: int
    clock: Clock
    weekday: int | None

    def moments(self) -> tuple[datetime | None, datetime | None]:
        """Return the moments with the day first and with the month first; None for an order that is impossible."""
        orders = (self.second, self.first), (self.first, self.second)
        found = [self.clock.on(self.year, month, day) for month, day in orders]
        if all(found) and self.weekday is not None:
            fits = [date(self.year, month, day).weekday() == self.weekday for month, day in orders]
            if any(fits):  # else the feed names a wrong day
                found = [moment if fit else None for moment, fit in zip(found, fits, strict=True)]
        return found[0], found[1]


def is_loose(text: str) -> bool:
    """Return whether a simplified text is a loose date."""
    if _numeric(text) or _days_ago(text) is not None or _span_ago(text):
        return True
    month, numbers = month_and_numbers(read_clock(text).rest)
    return bool(month and len(numbers) == 1)


class LooseDates:
    """Reads the loose dates of one feed.

    Args:
        texts: all of them.
        now: the time of the fetch.
        language: of the feed.
        told: what stands first, if a person or an earlier reading said so.
    """

    def __init__(
        self, texts: Iterable[str], *, now: datetime, language: str | None, told: DateOrder | None = None
    ) -> None:
        self._now = now
        readings = [numeric.moments() for numeric in map(_numeric, texts) if numeric]
        self.proven = _prove(readings)
        """What stands first as rule 1 has it; None if no date proves it, or some contradict each other."""
        self._day_first, self._is_certain = _decide(readings, self.proven or told, now, language or "")

    def read(self, text: str) -> Reading | None:
        """Return the moment of a simplified text in this feed, or None."""
        if numeric := _numeric(text):
            return self._read_numeric(numeric)
        days = _days_ago(text)
        if days is not None:
            return self._on_day(days, text)
        if span := _span_ago(text):
            return Reading(self._now - span, is_guessed=True)
        return self._read_partial(text)

    def _read_numeric(self, numeric: _Numeric) -> Reading | None:
        day_first, month_first = numeric.moments()
        moment, other = (day_first, month_first) if self._day_first else (month_first, day_first)
        if moment is None:
            return Reading(other) if other else None
        return Reading(moment, is_ambiguous=bool(other) and other != moment and not self._is_certain)

    def _on_day(self, days: int, text: str) -> Reading | None:
        day = self._now - timedelta(days=days)
        clock = read_clock(text)
        if clock.rest == text:  # no time of the day: today can't be later than now
            moment = day if not days else clock.on(day.year, day.month, day.day)
        else:
            moment = clock.on(day.year, day.month, day.day)
        return Reading(moment, is_guessed=True) if moment else None

    def _read_partial(self, text: str) -> Reading | None:
        """Read a date without a year as its last occurrence, one without a day as the first of the month."""
        clock = read_clock(text)
        month, numbers = month_and_numbers(clock.rest)
        if not month or len(numbers) != 1:
            return None
        if len(numbers[0]) == 4:
            moment = clock.on(int(numbers[0]), month, 1)
        else:
            years = (self._now.year, self._now.year - 1)
            found = [moment for year in years if (moment := clock.on(year, month, int(numbers[0])))]
            moment = next((one for one in found if one <= self._now + FUTURE_TOLERANCE), None)
        return Reading(moment, is_guessed=True) if moment else None


def _numeric(text: str) -> _Numeric | None:
    clock = read_clock(text)
    found = _NUMERIC.search(clock.rest)
    if not found:
        return None
    first, _, second, year = (part for part in found.groups() if part is not None)
    named = (_WEEKDAY[word[:3]] for word in _WORD.findall(text) if word[:3] in _WEEKDAY)
    return _Numeric(int(first), int(second), full_year(year), clock, next(named, None))


_Moments = tuple[datetime | None, datetime | None]
"""With the day first and with the month first."""


def _prove(readings: list[_Moments]) -> DateOrder | None:
    single = [day_first for day_first, month_first in readings if bool(day_first) != bool(month_first)]
    only: set[DateOrder] = {"day" if day_first else "month" for day_first in single}
    return only.pop() if len(only) == 1 else None


def _decide(readings: list[_Moments], known: DateOrder | None, now: datetime, language: str) -> tuple[bool, bool]:
    """Return whether the day is first, and whether that is certain."""
    if known:
        return known == "day", True
    both = [reading for reading in readings if all(reading)]
    is_mixed = any(day_first or other for day_first, other in readings if not (day_first and other))
    for order in (True, False):
        moments, others = ([reading[at] for reading in both] for at in ((0, 1) if order else (1, 0)))
        if _ahead(others, now) and not _ahead(moments, now):
            return order, True
        if not is_mixed and _runs(moments) and not _runs(others):
            return order, True
    if not is_mixed and _DAY_FIRST.fullmatch(language):
        return True, True
    return not _MONTH_FIRST.fullmatch(language), False


def _ahead(moments: list[datetime | None], now: datetime) -> bool:
    return any(moment and moment > now + FUTURE_TOLERANCE for moment in moments)


def _runs(moments: list[datetime | None]) -> bool:
    known = [moment for moment in moments if moment]
    return len(known) >= _MIN_RUN and known in (sorted(known), sorted(known, reverse=True))


def _days_ago(text: str) -> int | None:
    words = _WORD.findall(text)
    return next((_DAYS_AGO[word] for word in words[:3] if word in _DAYS_AGO), None)


def _span_ago(text: str) -> timedelta | None:
    words = _WORD.findall(text)
    if _AGO.isdisjoint(words) and not text.rstrip().endswith(("前", "전")):
        return None
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 3] or [1]
    spans = [unit for word in words if word not in _AGO and (unit := _unit(word))]
    return numbers[0] * spans[-1] if spans else None


def _unit(word: str) -> timedelta | None:
    word = word.rstrip("前后間间간전")
    return next((unit for name, unit in _UNITS if (word.startswith(name) if len(name) > 2 else word == name)), None)
