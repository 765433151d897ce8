"""URLs out of feeds: absolute, http or https, or nothing."""

from __future__ import annotations

import re
from urllib.parse import quote, urljoin, urlsplit

MAX_URL_CHARS = 8192
"""Longer ones are no URL that a server would take (RFC 9110, section 4.1, asks for 8,000)."""

_EDGES = "".join(map(chr, range(0x21)))
# As most are: nothing to resolve, to clean or to refuse.
_PLAIN = re.compile(r"https?://[a-zA-Z0-9._-]+(?::[0-9]*)?(?:[/?#][\x21-\x7e]*)?")
# What a terminal or a reader would act on, or not see: C1 controls, marks of direction, characters without width.
_ESCAPED = re.compile(r"[\s\x80-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_INSIDE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


def absolute(href: str, *bases: str) -> str:
    """Return `href` as an absolute http(s) URL, resolved against the first of `bases` that makes it one, else "".

    Whitespace around and line breaks within are dropped, as browsers do (WHATWG URL); a space within becomes `%20`,
    other white space and characters that are not to be seen their escapes.
    `javascript:`, `data:`, `file:` and every other scheme give "".
    """
    if len(href) <= MAX_URL_CHARS and _PLAIN.fullmatch(href):
        return href
    href = _ESCAPED.sub(lambda found: quote(found[0]), _INSIDE.sub("", href.strip(_EDGES + "\xa0")))
    if not href:
        return ""
    for base in ("", *bases):
        url = _join(base, href)
        if url:
            return url
    return ""


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
