"""URLs out of feeds: absolute, http or https, or nothing."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit

from services.fetcher.parse.marks import has_long_run

MAX_URL_CHARS = 8192
"""Longer ones are no URL that a server would take (RFC 9110, section 4.1, asks for 8,000)."""

MAX_BASE_CHARS = 1000
"""A longer address is no base for others: each address that is resolved against one is as long."""

_EDGES = "".join(map(chr, range(0x21)))
# As most are: nothing to resolve, to clean or to refuse.
_PLAIN = re.compile(r"https?://[a-zA-Z0-9._-]+(?::[0-9]*)?(?:[/?#][\x21-\x7e]*)?")
_SPACE = re.compile(r"\s")
_INSIDE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


def absolute(href: str, *bases: str) -> str:
    """Return `href` as an absolute http(s) URL, resolved against the first of `bases` that makes it one, else "".

    Whitespace around and line breaks within are dropped, as browsers do (WHATWG URL); a space within becomes `%20`,
    other white space its escape.
    `javascript:`, `data:`, `file:` and every other scheme give "".
    """
    if len(href) <= MAX_URL_CHARS and _PLAIN.fullmatch(href):
        return href
    href = _INSIDE.sub("", href.strip(_EDGES + "\xa0"))
    if not href or not is_resolvable(href):
        return ""
    href = _SPACE.sub(lambda found: quote(found[0]), href)
    for base in ("", *bases):
        url = _join(base, href) if len(base) <= MAX_BASE_CHARS else ""
        if url:
            return url
    return ""


def is_resolvable(href: str) -> bool:
    """Return whether resolving `href` takes little time: `urlsplit` normalises what could be a host."""
    return len(href) <= MAX_URL_CHARS and not has_long_run(href)


def _join(base: str, href: str) -> str:
    try:
        url = urljoin(base, href)
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:  # a broken IPv6 host, for one
        return ""
    if parts.scheme not in {"http", "https"} or not host or len(url) > MAX_URL_CHARS:
        return ""
    return parts.scheme + url[len(parts.scheme) :]  # lower case, as urlsplit gives it
