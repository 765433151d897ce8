"""Pure: what different addresses of one article have in common.

A feed of the site, one with tracking parameters, the mobile page, the AMP page and its cache, http and https: all of
them lead to one article. What is dropped here is what says how a reader came, or in what dress the article is shown;
what may say which article it is (any other argument, the case of the path) stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import md5
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlencode
from uuid import UUID

_TRACKING = re.compile(
    r"(?:utm|mtm|pk|piwik|matomo|hsa|vero|oly|wt|at|stm|guce|trk)_.*"
    r"|(?:fb|g|d|tw|y|tt)clid|msclkid|wbraid|gbraid|li_fat_id|epik|irclickid|igshid?|mc_[ce]id|mkt_tok|_hs(?:enc|mi)"
    r"|__hs(?:fp|sc|tc)|ref|ref_?src|ref_?url|referrer|cmp(?:id)?|ncid|ocid|icid|s_cid|ito|smid|smtyp|spm|scm|xtor|ftag"
    r"|guccounter|__twitter_impression|traffic_source|from_?rss|source",
    re.IGNORECASE,
)
"""Arguments that tell how a reader came. The list follows ClearURLs' and what feeds of news sites carry."""

_DRESS = re.compile(r"amp|outputtype|output_type|output|view|m|mobile", re.IGNORECASE)
_DRESSES = frozenset({"", "1", "true", "amp", "mobile"})
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
    """Return the common form of an article's addresses, without a scheme; None if it does not lead to one article.

    The front page of a site is no article: feeds of podcasts and of link lists give it to every entry.
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
        if not _TRACKING.fullmatch(name) and not (_DRESS.fullmatch(name) and value.lower() in _DRESSES)
    ]
    return urlencode(sorted(arguments))


def _same_escapes(path: str) -> str:
    if _PLAIN.fullmatch(path):
        return path
    return quote(unquote_to_bytes(path), safe=_UNRESERVED)


def duplicate_keys(urls: Sequence[str], wanted: Iterable[int]) -> dict[int, UUID]:
    """Return for entries of one feed what two of one article have in common: the MD5 of the canonical URL.

    Where several entries of a feed have the same address, it tells nothing of which article it is.

    Args:
        urls: of all entries of the feed, as it lists them.
        wanted: the places of those that are asked for; the canonical form is not for nothing.
    """
    alike: dict[str, list[int]] = {}
    for at, url in enumerate(urls):
        alike.setdefault(_stem(url), []).append(at)
    keys: dict[int, UUID] = {}
    for at in wanted:
        form = canonical_url(urls[at])
        places = alike[_stem(urls[at])]
        if form is not None and (len(places) == 1 or [canonical_url(urls[n]) for n in places].count(form) == 1):
            keys[at] = UUID(bytes=md5(form.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest())
    return keys


def _stem(url: str) -> str:
    """Return the part of an address that two within one feed share if they are the same: without arguments."""
    return url.partition("#")[0].partition("?")[0].partition("://")[2].rstrip("/")
