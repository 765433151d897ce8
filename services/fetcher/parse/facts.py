"""A feed's statements about itself beside its title: polling hints, hubs, address and pictures."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from services.fetcher.parse.document import read_attributes
from services.fetcher.parse.model import FeedFacts
from shared.wire.results import ServerHints

MAX_HEAD_CHARS = 200_000
MAX_LINKS = 100
MAX_HUBS = 10
_MAX_VALUE_CHARS = 2_000

_FIRST_ENTRY = re.compile(r"<(?:[\w.-]++:)?+(?:item|entry)(?=[\s/>])", re.IGNORECASE)
_LINK = re.compile(r"<(?:[\w.-]++:)?+link(\s[^<>]*+)>", re.IGNORECASE)
_IMAGE = re.compile(r"<image(?=[\s>])[^<>]*+>", re.IGNORECASE)
_ITUNES_IMAGE = re.compile(r"<itunes:image(\s[^<>]*+)>", re.IGNORECASE)
_VALUE = r"<(?:[\w.-]++:)?+{name}(?:\s[^<>]*+)?+>\s*+(?:<!\[CDATA\[)?+([^<\]]{{0," + str(_MAX_VALUE_CHARS) + r"}})[<\]]"
_ICON, _LOGO, _URL, _PERIOD, _FREQUENCY, _BASE = (
    re.compile(_VALUE.format(name=name), re.IGNORECASE)
    for name in ("icon", "logo", "url", "updatePeriod", "updateFrequency", "updateBase")
)

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
    """Return the hints in these texts; what is no number or no name of a day is ignored.

    Args:
        ttl: minutes between polls (RSS 2.0), at most a year. It has priority over `period` and `frequency`.
        period: hourly, daily, weekly, monthly or yearly (RSS 1.0 syndication).
        frequency: polls in a period; once by default.
        hours: when not to come, 0–23 UTC; 24 is midnight too (RSS 0.91).
        days: when not to come, by their English names. Monday becomes 0.
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


def read_facts(source: str) -> FeedFacts:
    """Return the facts of the feed in `source`, an XML document, with addresses as they are written there.

    They are read once for all tiers, from the text before the first entry: feedparser drops some of them. Prefixes are
    ignored (`atom:link`, `atom10:link` and `link` are the same). Time is linear.
    """
    entry = _FIRST_ENTRY.search(source)
    head = source[: min(entry.start() if entry else len(source), MAX_HEAD_CHARS)]
    links = [read_attributes(found[1]) for found, _ in zip(_LINK.finditer(head), range(MAX_LINKS), strict=False)]
    image = _IMAGE.search(head)
    picture = _first(_URL, head, image.end()) if image else ""
    podcast = _ITUNES_IMAGE.search(head)
    return FeedFacts(
        self_url=next(iter(_related(links, "self")), ""),
        hubs=tuple(dict.fromkeys(_related(links, "hub")))[:MAX_HUBS],
        icon=_first(_ICON, head),
        image=_first(_LOGO, head) or picture or (read_attributes(podcast[1]).get("href", "") if podcast else ""),
        update_period=_first(_PERIOD, head).lower(),
        update_frequency=_first(_FREQUENCY, head),
        update_base=_first(_BASE, head),
    )


def _first(expression: re.Pattern[str], head: str, start: int = 0) -> str:
    found = expression.search(head, start)
    return html.unescape(found[1]).strip() if found else ""


def _related(links: list[dict[str, str]], relation: str) -> list[str]:
    """Return the addresses of links with this relation; a link may have several (WebSub, section 4)."""
    return [link["href"] for link in links if relation in link.get("rel", "").lower().split() and link.get("href")]
