"""What is refused to everybody: a foreign Host, a foreign page, a token in the URL."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote_plus, urlsplit

from services.admin.access.tokens import TOKEN
from services.api.problems import ProblemError

READING = frozenset({"GET", "HEAD", "OPTIONS"})

Headers = Sequence[tuple[bytes, bytes]]
"""Names are in lower case."""

_SECRET_NAMES = frozenset({"token", "access_token", "api_token", "auth_token", "api_key", "apikey", "authorization"})

_HOST = re.compile(r"(?P<name>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,253})(?::(?P<port>\d{1,5}))?", re.ASCII)


def all_of(headers: Headers, name: bytes) -> list[str]:
    """Return the values of a header, as they came."""
    return [value.decode("latin-1") for key, value in headers if key == name]


def check_host(headers: Headers, hosts: frozenset[str]) -> None:
    """Refuse a request to a name that is not ours, which a page elsewhere may have made to point here (DNS rebinding).

    IP addresses and `localhost` can't be made to point elsewhere, so they are always good.

    Args:
        headers: of the request.
        hosts: other names of this API, in lower case; `*` is any.
    """
    given = all_of(headers, b"host")
    found = _HOST.fullmatch(given[0]) if len(given) == 1 else None
    if found is None:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the request needs one Host header, with a name and perhaps a port")
    name = found["name"].lower().removesuffix(".")
    if "*" in hosts or name in hosts or name == "localhost" or name.endswith(".localhost") or _is_address(name):
        return
    raise ProblemError(
        HTTPStatus.MISDIRECTED_REQUEST,
        f"the Host {name!r} is no name of this API: ask it by an IP address or `localhost`, or add the name to"
        " FEEDMILL_API_HOSTS",
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def check_origin(method: str, headers: Headers) -> None:
    """Refuse a change that a browser sends for a page of another origin, whatever cookies it sends along.

    Programs send neither header. Browsers send `Sec-Fetch-Site` to https and localhost, and `Origin` to all.
    """
    if method in READING:
        return
    site = all_of(headers, b"sec-fetch-site")
    origin = all_of(headers, b"origin")
    if site:
        is_ours = set(site) <= {"same-origin", "none"}
    else:
        is_ours = not origin or [_authority(text) for text in origin] == [
            host.lower() for host in all_of(headers, b"host")
        ]
    if not is_ours:
        raise ProblemError(HTTPStatus.FORBIDDEN, "a page of another origin may change nothing here")


def _authority(origin: str) -> str | None:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return None
    return parts.netloc.lower() if parts.scheme in {"http", "https"} else None


def check_url(path: str, query: bytes) -> None:
    """Refuse a URL with a token in it, and one with a NUL, which no text in the database can hold."""
    text = query.decode("latin-1")
    names = {name.lower() for name, _ in parse_qsl(text, keep_blank_values=True)}
    if names & _SECRET_NAMES or TOKEN.search(path) or TOKEN.search(unquote_plus(text)):
        raise ProblemError(
            HTTPStatus.BAD_REQUEST,
            "a token doesn't belong in a URL, which stands in logs and histories: send it in the header Authorization,"
            " after the word Bearer, and revoke this one (`feedmill token revoke`)",
        )
    if "\0" in path or "%00" in text:
        raise ProblemError(HTTPStatus.BAD_REQUEST, "the URL has a NUL character (%00), which is in no text of ours")
