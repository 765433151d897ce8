"""Pure: which host and which politeness group a URL belongs to. All limits towards servers are kept per group."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from urllib.parse import SplitResult, unquote, urlsplit

import idna

_HOST = re.compile(r"[a-z0-9._-]+")  # underscores are against the rules, and in use
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}")  # the usual spelling

MAX_URL_CHARACTERS = 2000
"""Fits into the unique index of feeds, and into every browser."""

MAX_HOST_CHARACTERS = 253
MAX_LABEL_CHARACTERS = 63
"""Limits of DNS (RFC 1035 2.3.4)."""

DEFAULT_PORTS = {"http": 80, "https": 443}

MAX_SERVER_WAIT_SECONDS = 86400.0
"""The longest wait that a server may ask for. Every place that honours such a wait reads this."""


class BadUrl(ValueError):
    """Not a URL that a feed can be fetched from; the message says why."""


def politeness_group(url: str, proxy_hosts: frozenset[str] = frozenset()) -> str:
    """Return `host[:port]` of `url`: the host as `host_of` returns it, without a dot at its end or a default port.

    For hosts in `proxy_hosts`, which front many sites (an RSSHub), the first path segment is added.

    Raises:
        BadUrl: no http(s) URL, no host, a bad port, or a host that is no name.
    """
    parts = _split(url)
    host, port = _host(parts).removesuffix("."), parts.port
    name = f"[{host}]" if ":" in host else host
    group = name if port in {None, DEFAULT_PORTS[parts.scheme]} else f"{name}:{port}"
    if name in proxy_hosts:
        first_segment = parts.path.lstrip("/").partition("/")[0]
        return f"{group}/{first_segment}"
    return group


@lru_cache(maxsize=1000)  # a fetch asks three times
def host_of(url: str) -> str:
    """Return the host of `url` for the name look-up: one spelling for all spellings of a host.

    Names are lower-case and IDNA; a dot at the end stays, since a resolver may answer otherwise with it. Addresses are
    spelled as `ipaddress` does, without brackets; an IPv4 address within an IPv6 one is that IPv4 address.

    Raises:
        BadUrl: as `politeness_group`.
    """
    return _host(_split(url))


def clean_url(url: str) -> str:
    """Return `url` as it is registered: stripped, without fragment, scheme and host in lower case.

    Raises:
        BadUrl: over 2000 characters, or white space or control characters inside; and as `politeness_group`.
    """
    text = url.strip()
    if len(text) > MAX_URL_CHARACTERS:
        raise BadUrl(f"it has {len(text)} characters; at most {MAX_URL_CHARACTERS} are taken")
    if " " in text or not text.isprintable():
        raise BadUrl("there is white space or a control character in it")
    politeness_group(text)
    parts = urlsplit(text)
    userinfo, at, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{userinfo}{at}{host.lower()}", fragment="").geturl()


def same_origin(origin_url: str, url: str) -> bool:
    """Return whether secrets for the server of `origin_url` may also be sent to `url`.

    Scheme, host and port are the same, or it is http and then https on the same host's default ports.
    """
    if origin_url == url:
        return True
    try:
        if politeness_group(origin_url) != politeness_group(url):
            return False
    except BadUrl:
        return False
    before, after = urlsplit(origin_url), urlsplit(url)
    if before.scheme == after.scheme:
        return True
    upgrade = (before.scheme, after.scheme) == ("http", "https")
    return upgrade and all(parts.port in {None, DEFAULT_PORTS[parts.scheme]} for parts in (before, after))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise BadUrl(why_no_url(error)) from None
    if not parts.scheme:
        raise BadUrl("it has no scheme; a feed's URL begins with http:// or https://")
    if parts.scheme not in DEFAULT_PORTS:
        raise BadUrl(f"the scheme is {parts.scheme!r}; only http and https feeds can be fetched")
    if not host:
        raise BadUrl("the URL names no host")
    return parts


def why_no_url(error: ValueError) -> str:
    """Return why `urllib.parse` refuses a URL, without the parts of a password that its errors quote."""
    reason = str(error)
    if reason.startswith("Port could not"):
        return "not a URL: the port is no number (in a password, / ? # and @ have to be percent-encoded)"
    if "NFKC" in reason:
        return "not a URL: a character in front of its path stands for another one that can't be there"
    return f"not a URL: {reason}"


def _host(parts: SplitResult) -> str:
    text = parts.hostname
    assert text is not None
    if ":" in text:
        return _ipv6(text)
    name = _ascii_name(text)
    if _IPV4.fullmatch(name):
        return name
    labels = name.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(labels, name)
    if not all(labels):
        raise BadUrl(f"a label of the host {name!r} is empty")
    if len(name.removesuffix(".")) > MAX_HOST_CHARACTERS or max(map(len, labels)) > MAX_LABEL_CHARACTERS:
        raise BadUrl("the host is longer than a name can be")
    return name


def _ascii_name(text: str) -> str:
    if "%" in text:
        try:
            text = unquote(text, errors="strict")
        except UnicodeError as error:
            raise BadUrl(f"{text!r} is no host name") from error
    name = text.lower()
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode()
        except idna.IDNAError as error:
            raise BadUrl(f"the host is no valid international name: {error}") from error
    if not _HOST.fullmatch(name):
        raise BadUrl(f"{name!r} is no host name")
    return name


def _ipv6(text: str) -> str:
    try:
        address = ipaddress.IPv6Address(text.partition("%")[0])  # a zone belongs to this machine, not to the host
    except ValueError as error:
        raise BadUrl(f"not a URL: {error}") from error
    return str(address.ipv4_mapped or address)


def _ipv4(labels: list[str], name: str) -> str:
    """Return the address that resolvers read in such a host: up to four numbers, octal with 0, hexadecimal with 0x.

    The last number fills the bytes that are left (`127.1`, `2130706433`).
    """
    try:
        *first, last = [_number(label) for label in labels]
    except ValueError as error:
        raise BadUrl(f"the host {name!r} ends in a number and is no address") from error
    left = 4 - len(first)
    if left < 1 or any(byte > 255 for byte in first) or last >= 256**left:
        raise BadUrl(f"the host {name!r} ends in a number and is no address")
    return str(ipaddress.IPv4Address(bytes(first) + last.to_bytes(left, "big")))


def _number(label: str) -> int:
    if not _NUMBER.fullmatch(label) or len(label) > 20:
        raise ValueError(label)
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if label.startswith("0") and label != "0" else 10)
