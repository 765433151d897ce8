"""Addresses of links as feedparser reads them."""

from __future__ import annotations

import re

from feedparser.urls import _urljoin

from services.fetcher.parse.formats.strict.tree import Attributes
from services.fetcher.parse.text.links import is_resolvable

_ABSOLUTE = re.compile(r"https?://[a-zA-Z0-9.-]+/[a-zA-Z0-9._~/%+-]*(?:\?[a-zA-Z0-9._~/%+&=-]+)?")
"""Most addresses: joining such a one with a base changes nothing."""
_QUERY_REFERENCE = re.compile("&([A-Za-z0-9_]+);")


def resolve(base: str, href: str) -> str:
    """Return an address joined with the base in force, or as it is if there is none or joining would take long."""
    if not (base or ":///" in href) or _ABSOLUTE.fullmatch(href) or not is_resolvable(href):
        return href
    return str(_urljoin(base, href))


def without_references(href: str) -> str:
    """Return a link without the references that were escaped once too often."""
    return _QUERY_REFERENCE.sub(r"&\1", href)


def enforce_href(attributes: Attributes) -> None:
    """Have the address that an element carries stand in `href`."""
    href = attributes.get("url", attributes.get("uri", attributes.get("href")))
    if href:
        attributes.pop("url", None)
        attributes.pop("uri", None)
        attributes["href"] = href
