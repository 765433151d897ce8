"""Finds the time of the day and the zone in the text of a date; the rest names the day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_ZONES: dict[float, str] = {
    0: "z ut utc gmt wet",
    1: "cet met bst west wat mez",
    2: "cest mest eet sast cat mesz",
    3: "eest msk eat trt мск",
    3.5: "irst",
    4: "gst",
    5: "pkt",
    5.5: "ist",
    5.75: "npt",
    7: "ict wib",
    8: "hkt sgt pht awst wita myt",
    9: "jst kst wit",
    9.5: "acst",
    10: "aest",
    10.5: "acdt",
    11: "aedt",
    12: "nzst",
    13: "nzdt",
    -2.5: "ndt",
    -3: "brt art adt",
    -3.5: "nst",
    -4: "clt ast at edt",
    -5: "cot pet est et cdt",
    -6: "cst ct mdt",
    -7: "mst mt pdt",
    -8: "pst pt akdt",
    -9: "akst",
    -10: "hst",
}
"""Names of zones by their hours east of Greenwich. Ambiguous ones: CST and EST are American, IST is Indian, BST is
British. RFC 5322, section 4.3, defines the American ones, and says that military letters can't be trusted."""

_HOURS = {name: hours for hours, names in _ZONES.items() for name in names.split()}

_CLOCK = re.compile(
    r"(?<![\d:+])(?:([ap])\.?m\.?\s*)?(\d{1,2})(?::|h\s?)(\d{1,2})(?!\d)"
    r"(?::(\d{1,2})(?!\d)(?:[.,](\d+))?)?(?:\s*([ap])\.?m\b\.?)?",
)
_HOUR = re.compile(r"(?<![\d:])(\d{1,2})()()()\s*([ap])\.?m\b\.?")
_DOTTED = re.compile(r"(?<=\s)()(\d{1,2})\.(\d{2})()()()(?=\s*$)")
_OFFSET = re.compile(r"(?:\b(?:gmt|utc)\s*)?(?<!\d)([+\-\u2212])\s?(\d{1,2}):?(\d{2})?(?![\d/.-])(?:\s*\([\w /+-]*\))?")
_WORD = re.compile(r"(?:etc/)?([^\W\d_]{1,4})\b")
_PLACE = re.compile(
    r"\b(?:africa|america|antarctica|asia|atlantic|australia|europe|indian|pacific)/[a-z_]{3,30}(?:/[a-z_]{3,30})?\b"
)


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of the day, its zone, and the rest of the text."""

    hour: int
    minute: int
    second: int
    microsecond: int
    offset: timedelta
    rest: str
    zone: tzinfo | None = None
    """A zone whose offset depends on the day; it replaces `offset`."""

    def on(self, year: int, month: int, day: int) -> datetime | None:
        """Return the moment in UTC, or None if the day or time does not exist. 24:00 is the next day's midnight."""
        try:
            midnight = datetime(year, month, day, tzinfo=UTC)
            if self.zone:
                return (
                    midnight.replace(hour=self.hour, minute=self.minute, second=self.second)
                    .replace(tzinfo=self.zone)
                    .astimezone(UTC)
                )
            if (self.hour, self.minute, self.second) == (24, 0, 0):
                return midnight + timedelta(days=1) - self.offset
            second = min(self.second, 59) if self.second == 60 else self.second  # a leap second
            return (
                midnight.replace(hour=self.hour, minute=self.minute, second=second, microsecond=self.microsecond)
                - self.offset
            )
        except (ValueError, OverflowError):
            return None


def read_clock(text: str) -> Clock:
    """Return the time of the day in `text` (lower case), or midnight in UTC if it has none.

    A zone is expected behind the time. An unknown zone counts as UTC.
    """
    found = _CLOCK.search(text) or _DOTTED.search(text)
    if found:
        before, hours, minutes, seconds, fraction, after = found.groups()
        half = before or after
    else:
        found = _HOUR.search(text)
        if not found:
            return Clock(0, 0, 0, 0, timedelta(), text)
        hours, minutes, seconds, fraction, half = found.groups()
    hour = int(hours)
    if half and hour <= 12:
        hour = hour % 12 + (12 if half == "p" else 0)
    offset, tail = _zone(text[found.end() :])
    zone, tail = _place(tail)
    if offset:  # it has priority over a place: `+02:00[europe/paris]`
        zone = None
    microsecond = int((fraction or "0")[:6].ljust(6, "0"))
    rest = f"{text[: found.start()]} {tail}"
    return Clock(hour, int(minutes or 0), int(seconds or 0), microsecond, offset, rest, zone)


def _place(tail: str) -> tuple[tzinfo | None, str]:
    """Return the zone of a place (`europe/brussels`), if this machine knows it, and the rest of the text."""
    found = _PLACE.search(tail)
    if not found:
        return None, tail
    try:
        return ZoneInfo(found[0].title()), tail[: found.start()] + " " + tail[found.end() :]
    except (LookupError, ValueError, OSError):
        return None, tail


def _zone(tail: str) -> tuple[timedelta, str]:
    found = _OFFSET.search(tail)
    if found:
        offset = timedelta(hours=int(found[2]), minutes=int(found[3] or 0))
        return offset if found[1] == "+" else -offset, tail[: found.start()] + " " + tail[found.end() :]
    for word in _WORD.finditer(tail):
        if word[1] in _HOURS:
            return timedelta(hours=_HOURS[word[1]]), tail[: word.start()] + " " + tail[word.end() :]
    return timedelta(), tail
