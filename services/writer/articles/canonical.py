"""Pure: the canonical URL of an article.

Addresses with tracking parameters, of the mobile page, the AMP page and its cache, with http and https lead to one
article. The canonical form drops the parts that tell how a reader came or which layout is shown. Parts that may tell
which article it is (any other argument, the case of the path) stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import md5
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode

_TRACKING = re.compile(
    r"(?:utm|mtm|pk|piwik|matomo|hsa|vero|oly|wt|at|stm|guce|trk)_.*"
    r"|(?:fb|g|d|tw|y|tt)clid|msclkid|wbraid|gbraid|li_fat_id|epik|irclickid|igshid?|mc_[ce]id|mkt_tok|_hs(?:enc|mi)"
    r"|__hs(?:fp|sc|tc)|ref|ref_?src|ref_?url|referrer|cmp(?:id)?|ncid|ocid|icid|s_cid|ito|smid|smtyp|spm|scm|xtor|ftag"
    r"|guccounter|__twitter_impression|traffic_source|from_?rss|source",
    re.IGNORECASE,
)
"""Arguments that tell how a reader came. The list follows ClearURLs' and the feeds of news sites."""

_LAYOUT = re.compile(r"amp|outputtype|output_type|output|view|m|mobile", re.IGNORECASE)
_LAYOUT_VALUES = frozenset({"", "1", "true", "amp", "mobile"})
"""Arguments, and values of them, that ask for the AMP or the mobile page."""

_URL = re.compile(
    r"https?://(?:[^/?#@]*@)?([^/?#:@\[\]\s]+)(?::(\d{1,5}))?(/[^?#]*)?(?:\?([^#]*))?(?:#(.*))?",
    re.IGNORECASE | re.DOTALL,
)
"""Host, port, path, query, fragment. The reader gives addresses that are whole and absolute."""

_FRONT = re.compile(r"(?:www\d?|m|mobile|amp|amp-www)\.(?=[^.]+\.)")
_CACHES = re.compile(r"(?:[^.]+\.)?cdn\.ampproject\.org|(?:www\.)?google\.com")
_CACHE = re.compile(r"(?:/amp/|/[cvi]/)(?:s/)?([^/]+\.[^/]+)(/.*)?")
_AMP_PATH = re.compile(r"(?:/amp(?:\.html?)?|\.amp)(?=$)|^/amp(?=/)", re.IGNORECASE)
_AMP_PAGE = re.compile(r"\.amp(?=\.html?$)", re.IGNORECASE)
_PLAIN = re.compile(r"[A-Za-z0-9/._~-]*")
_UNRESERVED = "-._~!$&'()*+,;=:@/"


def canonical_url(url: str) -> str | None:
    """Return the canonical form, without a scheme; None if the URL does not lead to one article.

    The front page of a site is no article: podcasts and link lists give it to every entry.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        return None
    host, port, path = parts[1].rstrip(".").lower(), parts[2], parts[3] or ""
    if _CACHES.fullmatch(host) and (cached := _CACHE.fullmatch(path)):
        host, path = cached[1].lower(), cached[2] or "/"
    host = _FRONT.sub("", host, count=1)
    if port not in {None, "80", "443"}:
        host = f"{host}:{port}"
    path = _same_escapes(path).rstrip("/")
    if "amp" in path.lower():
        path = _AMP_PAGE.sub("", _AMP_PATH.sub("", path)).rstrip("/")
    query = _query(parts[4]) if parts[4] else ""
    fragment = parts[5] if parts[5] and parts[5][0] in "!/" else ""  # an address within a page of scripts
    if not path and not query and not fragment:
        return None
    return f"{host}{path}{'?' if query else ''}{query}{'#' if fragment else ''}{fragment}"


def _query(query: str) -> str:
    arguments = [
        (name, value)
        for name, value in parse_qsl(query, keep_blank_values=True, max_num_fields=None)
        if not _TRACKING.fullmatch(name) and not (_LAYOUT.fullmatch(name) and value.lower() in _LAYOUT_VALUES)
    ]
    return urlencode(sorted(arguments))


def _same_escapes(path: str) -> str:
    if _PLAIN.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe=_UNRESERVED)


def duplicate_keys(urls: Sequence[str], wanted: Iterable[int]) -> dict[int, str]:
    """Return the deduplication keys of a feed's entries, by place: the MD5 of the canonical URL, in hexadecimal.

    An address that several entries of the feed share gives no key: it does not tell which article it is.

    Args:
        urls: of all entries of the feed, as it lists them.
        wanted: the places that are asked for; each costs time.
    """
    alike: dict[str, list[int]] = {}
    stems = [_stem(url) for url in urls]
    for at, stem in enumerate(stems):
        alike.setdefault(stem, []).append(at)
    keys: dict[int, str] = {}
    for at in wanted:
        form = canonical_url(urls[at])
        places = alike[stems[at]]
        if form is not None and (len(places) == 1 or [canonical_url(urls[n]) for n in places].count(form) == 1):
            keys[at] = md5(form.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
    return keys


def _stem(url: str) -> str:
    """Return the address without scheme and arguments: equal addresses within a feed have an equal stem."""
    return url.partition("#")[0].partition("?")[0].partition("://")[2].rstrip("/")


def address_digest(url: str) -> int:
    """Return 63 bits and a final 0: equal for entries of a feed with one link, or with one canonical URL and stem."""
    address, _, query = url.partition("#")[0].partition("?")
    stem = _stem(address)
    text = f"{stem}?{_query(query)}" if query else f"{stem}?"
    return int.from_bytes(md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()[:8], "big") & ~1
