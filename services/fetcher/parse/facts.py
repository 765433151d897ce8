"""What an XML feed says of itself beside its title: hubs, its own address, its icon, the pace of its updates.

Read from what stands before the first entry, once for all tiers: feedparser keeps some of it and drops the rest.
Prefixes are not looked at (`atom:link`, `atom10:link`, `link` are the same to a reader), and time is linear.
"""

from __future__ import annotations

import html
import re

from services.fetcher.parse.formats.pieces import read_attributes
from services.fetcher.parse.model import RawFacts

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


def read_facts(source: str) -> RawFacts:
    """Return what the feed in `source` says of itself. Addresses are as they stand there."""
    entry = _FIRST_ENTRY.search(source)
    head = source[: min(entry.start() if entry else len(source), MAX_HEAD_CHARS)]
    links = [read_attributes(found[1]) for found, _ in zip(_LINK.finditer(head), range(MAX_LINKS), strict=False)]
    image = _IMAGE.search(head)
    picture = _first(_URL, head, image.end()) if image else ""
    podcast = _ITUNES_IMAGE.search(head)
    return RawFacts(
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
    """Return the addresses of links with this relation, which may be one of several (WebSub, section 4)."""
    return [link["href"] for link in links if relation in link.get("rel", "").lower().split() and link.get("href")]
