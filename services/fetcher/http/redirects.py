"""Pure: redirects. Each one leads to a request of its own, with checks, a slot and a politeness group of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from services.fetcher.http.failure import Failure, FetchFailed
from shared.politeness import BadUrl, host_of, why_no_url

MAX_REDIRECTS = 10
"""Redirects that one fetch follows."""

MAX_URL = 8000
"""Characters of a URL that is requested: RFC 9110 4.1 asks everyone to support so many, and signed links need them."""

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""Statuses whose Location is followed (RFC 9110 15.4); 300, 304 and 305 are none of them."""

_PERMANENT = frozenset({301, 308})

_URL_CHARACTERS = "!#$%&'()*+,/:;=?@[]~"
"""Reserved characters (RFC 3986 2.2) and `%` stay as they are; all others outside of ASCII's letters are escaped."""

_NO_HOST = re.compile(r"\s*https?://(?:[/?#]|\s*$)", re.IGNORECASE)
_AUTHORITY_END = re.compile(r"[/?]")


@dataclass(frozen=True)
class RedirectChain:
    """The redirects that a fetch has followed so far."""

    url: str
    """The next URL to request."""
    visited: tuple[str, ...] = ()
    """The URLs requested before, oldest first."""
    moved_to: str | None = None
    """Where the permanent redirects (301, 308) led before the first other one."""
    permanent: bool = True
    """Whether every redirect so far was permanent."""

    def follow(self, status: int, location: str) -> RedirectChain:
        """Return the chain after a redirect to `location`, a URL reference (RFC 9110 10.2.2).

        Raises:
            FetchFailed: REDIRECT for a circle and for more than `MAX_REDIRECTS`; BAD_URL for a target that can't be
                fetched: another scheme, no host, over `MAX_URL` characters.
        """
        visited = (*self.visited, self.url)
        try:
            url = _without_login(resolve(self.url, location), self.url)
        except BadUrl as error:
            reason = f"the redirect leads to no URL of a feed: {error}"
            raise FetchFailed(Failure.BAD_URL, reason, status) from error
        if url in visited:
            reason = f"the redirects go round in a circle at {url}"
            raise FetchFailed(Failure.REDIRECT, reason, status)
        if len(visited) > MAX_REDIRECTS:
            raise FetchFailed(Failure.REDIRECT, f"more than {MAX_REDIRECTS} redirects", status)
        permanent = self.permanent and status in _PERMANENT
        return RedirectChain(url, visited, url if permanent else self.moved_to, permanent)


def _without_login(url: str, base: str) -> str:
    """Return `url` without user and password, unless they are those of `base` at its origin.

    No server knows the credentials for another one.
    """
    parts, own = urlsplit(url), urlsplit(_normal(base))
    if "@" not in parts.netloc or (parts.scheme, parts.netloc) == (own.scheme, own.netloc):
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def resolve(base: str, reference: str) -> str:
    """Return the absolute URL that `reference` means at `base` (RFC 3986 5.2), escaped and without its fragment.

    Raises:
        BadUrl: not http(s), no host, a host that is no name, or over `MAX_URL` characters.
    """
    if len(reference) > MAX_URL:
        raise BadUrl(f"it has {len(reference)} characters; at most {MAX_URL} are taken")
    if _NO_HOST.match(reference):  # urljoin would take the base's
        raise BadUrl("the URL names no host")
    try:
        url = urljoin(base, reference.strip()).partition("#")[0]
        check_url(url)
        return _normal(url)
    except BadUrl:
        raise
    except ValueError as error:
        raise BadUrl(why_no_url(error)) from None


def _normal(url: str) -> str:
    """Return `url` escaped, its host in lower case, so that two spellings of one URL are seen as a circle."""
    scheme, _, rest = url.partition("://")
    found = _AUTHORITY_END.search(rest)
    end = found.start() if found else len(rest)
    userinfo, at, host = rest[:end].rpartition("@")
    return f"{scheme.lower()}://{userinfo}{at}{host.lower()}{quote(rest[end:], safe=_URL_CHARACTERS)}"


def check_url(url: str) -> str:
    """Return the host of `url`, as it is looked up, if the URL can be fetched.

    Raises:
        BadUrl: not http(s), no host, a host that is no name, or over `MAX_URL` characters.
    """
    if len(url) > MAX_URL:
        raise BadUrl(f"it has {len(url)} characters; at most {MAX_URL} are taken")
    return host_of(url)
