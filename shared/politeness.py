"""Pure: which politeness group a URL belongs to. All limits towards servers are kept per group."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import idna

_HOST = re.compile(r"[a-z0-9._-]+")  # underscores are against the rules, and in use

MAX_URL_CHARACTERS = 2000
"""What fits into the index that keeps feeds unique, and into every browser."""

DEFAULT_PORTS = {"http": 80, "https": 443}


class BadUrl(ValueError):
    """Not a URL that a feed can be fetched from; the message says why."""


def politeness_group(url: str, proxy_hosts: frozenset[str] = frozenset()) -> str:
    """Return `host[:port]` of `url`: lower-case, IDNA, without a default port.

    For hosts in `proxy_hosts`, which front many sites (an RSSHub), the first path segment is added.

    Raises:
        BadUrl: no http(s) URL, no host, a bad port, or a host that is no name.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise BadUrl(f"not a URL: {error}") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise BadUrl(f"the scheme is {parts.scheme or 'missing'!r}; only http and https feeds can be fetched")
    if not host:
        raise BadUrl("the URL names no host")
    name = _ascii_host(host)
    group = name if port in {None, DEFAULT_PORTS[parts.scheme]} else f"{name}:{port}"
    if name in proxy_hosts:
        first_segment = parts.path.lstrip("/").partition("/")[0]
        return f"{group}/{first_segment}"
    return group


def clean_url(url: str) -> str:
    """Return `url` as it is registered: no white space around it, no fragment, scheme and host in lower case.

    Raises:
        BadUrl: over 2000 characters, or white space or control characters inside; and as `politeness_group`.
    """
    text = url.strip()
    if len(text) > MAX_URL_CHARACTERS:
        raise BadUrl(f"it has {len(text)} characters; at most {MAX_URL_CHARACTERS} are taken")
    if any(character == " " or not character.isprintable() for character in text):
        raise BadUrl("there is white space or a control character in it")
    politeness_group(text)
    parts = urlsplit(text)
    userinfo, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{userinfo}{at}{host.lower()}", fragment="").geturl()


def _ascii_host(host: str) -> str:
    host = host.rstrip(".").lower()
    if ":" in host:  # an IPv6 address
        return f"[{host}]"
    if host.isascii():
        if not _HOST.fullmatch(host):
            raise BadUrl(f"{host!r} is no host name")
        return host
    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError as error:
        raise BadUrl(f"the host is no valid international name: {error}") from error
