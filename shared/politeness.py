"""Pure: which politeness group a URL belongs to. All limits towards servers are kept per group."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import idna

_HOST = re.compile(r"[a-z0-9._-]+")  # underscores are against the rules, and in use

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
