"""URLs out of feeds: absolute, http or https, or nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

from services.fetcher.parse.text.marks import has_long_run

MAX_URL_CHARS = 8192
"""Longer ones are no URL that a server would take (RFC 9110, section 4.1, asks for 8,000)."""

MAX_BASE_CHARS = 1000
"""A longer address is not used as a base, since each address resolved against it would be as long."""

_EDGES = "".join(map(chr, range(0x21)))
# Most addresses: nothing to resolve, to clean or to refuse.
_PLAIN = re.compile(r"https?://[a-zA-Z0-9._-]+(?::[0-9]*)?(?:[/?#][\x21-\x7e]*)?")
_OTHER_SCHEME = re.compile(r"\s*(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_HTML = frozenset({"text/html", "application/xhtml+xml", "html", "xhtml"})
_WORST = 5
"""Above every rank."""
_IANA = "http://www.iana.org/assignments/relation/"
# Characters that a terminal would act on or that nobody sees: C1 controls, direction marks, zero-width characters.
_ESCAPED = re.compile(r"[\s\x80-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_INSIDE = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]+")


def absolute(href: str, *bases: str) -> str:
    """Return `href` as an absolute http(s) URL, resolved against the first of `bases` that makes it one, else "".

    White space around and line breaks within are dropped, as browsers do (WHATWG URL). Other white space and invisible
    characters are escaped. `javascript:`, `data:`, `file:` and every other scheme give "".
    """
    if len(href) <= MAX_URL_CHARS and _PLAIN.fullmatch(href):
        return href
    href = _INSIDE.sub("", href.strip(_EDGES + "\xa0"))
    if not href or not is_resolvable(href):
        return ""
    href = _ESCAPED.sub(lambda found: quote(found[0]), href)
    for base in ("", *bases):
        url = _join(base, href) if len(base) <= MAX_BASE_CHARS else ""
        if url:
            return url
    return ""


def is_resolvable(href: str) -> bool:
    """Return whether `href` can be resolved quickly: `urlsplit` normalises a possible host, in quadratic time."""
    return len(href) <= MAX_URL_CHARS and not has_long_run(href)


def has_other_scheme(href: str) -> bool:
    """Return whether `href` has a scheme that is not http(s): `at://`, `mailto:`, `javascript:`."""
    return not href.startswith(("https://", "http://")) and bool(_OTHER_SCHEME.match(href))


def without_other_schemes(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes of a link without addresses that are not http(s)."""
    for name in ("href", "url", "uri"):
        if name in attributes and has_other_scheme(attributes[name]):
            del attributes[name]
    return attributes


def own_address(links: Iterable[Mapping[str, Any]], language: str = "") -> str:
    """Return the address of a feed or an entry, chosen from its links, or "".

    The first link of the best kind:

    1. RSS's: the address is the text (`is_text`);
    2. Atom's alternates that are HTML, in `language` or in none;
    3. those that are HTML in another language;
    4. those of other media types, in the same order.

    Links with any other relation, an empty address or a scheme that is not http(s) never count.
    """
    best, address = _WORST, ""
    for link in links:
        href, relation = link.get("href"), link.get("rel")
        if href and (relation == "alternate" or is_alternate(relation)) and not has_other_scheme(str(href)):
            rank = _rank(link, language)
            if not rank:
                return str(href)
            if rank < best:
                best, address = rank, str(href)
    return address


def is_alternate(relation: object) -> bool:
    """Return whether a link with this relation leads to the page of the feed or entry; without a relation it does."""
    relations = str(relation or "").lower().removeprefix(_IANA).split()
    return not relations or "alternate" in relations


def _rank(link: Mapping[str, Any], language: str) -> int:
    if link.get("is_text"):
        return 0
    if link.get("type") == "text/html" and "hreflang" not in link:
        return 1
    kind = str(link.get("type") or "text/html").partition(";")[0].strip().lower()
    own, other = _primary(language), _primary(str(link.get("hreflang") or ""))
    is_foreign = own != "" and other not in {"", "x", own}  # `x-default` is for everyone
    return 1 + is_foreign + 2 * (kind not in _HTML)


def _primary(language: str) -> str:
    return language.strip().lower().replace("_", "-").partition("-")[0]


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
